"""The notebook in a real Chromium: person and agent write at the same time, and nothing that was typed is lost."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.e2e.steps import NO_WIDER, PHONE, begin_dialog, play
from tests.stack import Stack

pytestmark = pytest.mark.e2e

ROWS = """
from dialogs.models import LLM, Agent, Provider
provider = Provider.objects.create(name="scripted", kind="scripted", base_url="script.json")
Agent.objects.create(name="Helper", slug="helper", llm=LLM.objects.create(provider=provider, model_id="tiny"))
"""
AGENT = """
from dialogs.models import Dialog
from dialogs.models.reminder import Author
from dialogs.agents.writes import add_reminder, remove_reminder, update_reminder, write_taskdoc
dialog, agent = Dialog.objects.latest("created_at"), Author.AGENT
"""


@pytest.fixture(scope="module")
def scripted(stack: Stack) -> Stack:
    play(stack, {"text": "fine"})
    stack.shell(ROWS)
    return stack


@pytest.fixture
def chat(page: Page, scripted: Stack) -> Page:
    """A dialog with the reminders 1 and 2 of the agent's, and the notebook open."""
    begin_dialog(page, scripted)
    agent(scripted, "for text in ('Apples', 'Pears'): add_reminder(dialog=dialog, content=text, author=agent)")
    page.get_by_role("button", name="Reminders and Taskdoc").click()
    expect(reminders(page)).to_have_count(2)
    return page


def agent(stack: Stack, code: str) -> None:
    """Let the agent do something, in the worker's stead."""
    stack.shell(AGENT + code)


def reminders(page: Page) -> Locator:
    return page.locator("#notebook > section > .reminders > .reminder")


def edit(page: Page, number: int) -> Locator:
    """Open the form; its text."""
    page.get_by_label(f"Edit reminder {number}").click()
    return page.get_by_label(f"Text of reminder {number}")


def save(page: Page, number: int) -> None:
    page.locator(f"#reminder-{number}").get_by_role("button", name="Save").click()


def test_what_is_typed_survives_what_the_agent_writes_and_removes_and_is_refused_in_words(
    chat: Page, scripted: Stack, faults: list[str]
) -> None:
    an_untouched_form_leaves_nothing(chat, scripted)

    field = edit(chat, 2)
    field.fill("My own words, half")
    stay_beside_what_the_agent_writes(chat, scripted, field)
    assert faults == []
    be_refused_in_words(chat, field)
    # To the browser's console a refusal is an error.
    faults.clear()

    be_kept_as_a_new_reminder(chat, scripted, field)


def an_untouched_form_leaves_nothing(page: Page, stack: Stack) -> None:
    edit(page, 1)
    agent(stack, "remove_reminder(dialog=dialog, number=1)")
    expect(reminders(page)).to_have_count(1)
    expect(page.get_by_label("New reminder")).to_have_value("")
    expect(page.locator("#notebook-error")).to_be_hidden()


def stay_beside_what_the_agent_writes(page: Page, stack: Stack, field: Locator) -> None:
    agent(stack, "update_reminder(dialog=dialog, number=2, content='Bananas', author=agent)")
    expect(page.locator("#reminder-2")).to_have_attribute("data-version", "2")
    expect(field).to_have_value("My own words, half")
    expect(field).to_be_focused()


def be_refused_in_words(page: Page, field: Locator) -> None:
    save(page, 2)
    expect(page.locator("#reminder-2").get_by_role("alert")).to_contain_text("changed meanwhile")
    expect(field).to_have_value("My own words, half")
    # What it says now stands beside it.
    expect(page.locator("#reminder-2 > .notebook-text")).to_have_text("Bananas")


def be_kept_as_a_new_reminder(page: Page, stack: Stack, field: Locator) -> None:
    page.get_by_label("New reminder").fill("Begun already")
    field.focus()
    agent(stack, "remove_reminder(dialog=dialog, number=2)")

    expect(reminders(page)).to_have_count(0)
    expect(page.get_by_label("New reminder")).to_have_value("Begun already\n\nMy own words, half")
    expect(page.get_by_label("New reminder")).to_be_focused()
    expect(page.locator("#notebook-error")).to_contain_text("Reminder 2 was removed meanwhile")


def test_a_person_and_an_agent_keep_one_notebook_and_what_was_removed_is_one_key_away(
    chat: Page, scripted: Stack, faults: list[str]
) -> None:
    edit_twice(chat, scripted)
    move_by_keyboard(chat)
    add_beside_the_agent(chat, scripted)
    write_the_taskdoc(chat, scripted)
    remove_and_undo_by_keyboard(chat)
    remove_though_the_sockets_news_come_first(chat)
    close_by_escape(chat)
    use_it_on_a_phone(chat)


def edit_twice(page: Page, stack: Stack) -> None:
    """An edit begins from what is there now."""
    agent(stack, "update_reminder(dialog=dialog, number=1, content='Bananas', author=agent)")
    expect(page.locator("#reminder-1")).to_have_attribute("data-version", "2")
    for before, after in (("Bananas", "Cherries\nred"), ("Cherries\nred", "Dates")):
        field = edit(page, 1)
        expect(field).to_have_value(before)
        field.fill(after)
        save(page, 1)
        expect(page.locator("#reminder-1 > .notebook-text")).to_have_text(after)
        expect(field).to_be_hidden()


def move_by_keyboard(page: Page) -> None:
    up = page.get_by_role("button", name="Move reminder 2 up")
    up.press("Enter")
    expect(reminders(page).first).to_contain_text("Pears")
    expect(up).to_be_focused()


def add_beside_the_agent(page: Page, stack: Stack) -> None:
    """The draft of a new one stays until it is added."""
    field = page.get_by_label("New reminder")
    field.fill("Buy nails")
    agent(stack, "add_reminder(dialog=dialog, content='Figs', author=agent)")
    expect(reminders(page)).to_have_count(3)
    expect(field).to_have_value("Buy nails")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(reminders(page).last).to_contain_text("Buy nails")
    expect(field).to_have_value("")
    expect(page.locator("#notebook-count")).to_have_text("4")


def write_the_taskdoc(page: Page, stack: Stack) -> None:
    """It is edited as text and shown as Markdown."""
    page.get_by_label("Edit the Taskdoc").click()
    page.get_by_label("Taskdoc, in Markdown").fill("Build **the boat**.")
    page.locator("#taskdoc").get_by_role("button", name="Save").click()
    expect(page.locator("#taskdoc strong")).to_have_text("the boat")
    agent(stack, "write_taskdoc(dialog=dialog, content='Build *it*.')")
    expect(page.locator("#taskdoc em")).to_have_text("it")


def remove_and_undo_by_keyboard(page: Page) -> None:
    page.get_by_role("button", name="Remove reminder 1").press("Enter")
    expect(reminders(page)).to_have_count(3)
    expect(page.get_by_role("button", name="Undo")).to_be_focused()

    page.keyboard.press("Enter")
    expect(reminders(page)).to_have_count(4)
    expect(reminders(page).last).to_contain_text("Dates")
    expect(page.get_by_role("button", name="Undo")).to_be_hidden()


def remove_though_the_sockets_news_come_first(page: Page) -> None:
    def late(route: Route) -> None:
        answer = route.fetch()
        expect(reminders(page)).to_have_count(3)
        route.fulfill(response=answer)

    page.route("**/remove/", late)
    page.get_by_role("button", name="Remove reminder 4").press("Enter")
    expect(page.get_by_role("button", name="Undo")).to_be_focused()


def close_by_escape(page: Page) -> None:
    """A form first, and the drawer then. What was typed into the form is there again."""
    field = edit(page, 2)
    field.fill("Pears, and a long list of")
    field.press("Escape")
    expect(field).to_be_hidden()
    expect(edit(page, 2)).to_have_value("Pears, and a long list of")
    field.press("Escape")
    expect(field).to_be_hidden()
    expect(reminders(page).first).to_be_visible()
    page.keyboard.press("Escape")
    expect(reminders(page).first).to_be_hidden()
    expect(page.get_by_role("button", name="Reminders and Taskdoc")).to_be_focused()


def use_it_on_a_phone(page: Page) -> None:
    """There it lies over the page."""
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size(PHONE)
    page.get_by_role("button", name="Reminders and Taskdoc").click()
    expect(page.locator("dialog:modal")).to_have_attribute("id", "notebook-drawer")
    assert page.evaluate(NO_WIDER)
    edit(page, 2).fill("Oranges")
    save(page, 2)
    expect(page.locator("#reminder-2 > .notebook-text")).to_have_text("Oranges")
