"""The notebook in a real Chromium: person and agent write at the same time, and nothing that was typed is lost."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.e2e.steps import begin_dialog, play
from tests.stack import Stack

pytestmark = pytest.mark.e2e

ROWS = """
from dialogs.models import LLM, Agent, Provider
provider = Provider.objects.create(name="scripted", kind="scripted", base_url="script.json")
Agent.objects.create(name="Helper", slug="helper", llm=LLM.objects.create(provider=provider, model_id="tiny"))
"""
AGENT = """
from dialogs.models import Dialog
from dialogs.models.dialog import Author
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


def test_what_is_typed_survives_what_the_agent_writes_and_is_refused_in_words(chat: Page, scripted: Stack) -> None:
    field = edit(chat, 1)
    field.fill("My own words, half")

    agent(scripted, "update_reminder(dialog=dialog, number=1, content='Bananas', author=agent)")
    expect(chat.locator("#reminder-1")).to_have_attribute("data-version", "2")
    expect(field).to_have_value("My own words, half")
    expect(field).to_be_focused()

    chat.locator("#reminder-1").get_by_role("button", name="Save").click()
    expect(chat.locator("#reminder-1").get_by_role("alert")).to_contain_text("changed meanwhile")
    expect(field).to_have_value("My own words, half")
    # What it says now stands beside it.
    expect(chat.locator("#reminder-1 > .notebook-text")).to_have_text("Bananas")


def test_what_was_typed_into_a_reminder_that_the_agent_removes_is_kept_and_an_untouched_form_leaves_nothing(
    chat: Page, scripted: Stack, faults: list[str]
) -> None:
    edit(chat, 1)
    agent(scripted, "remove_reminder(dialog=dialog, number=1)")
    expect(reminders(chat)).to_have_count(1)
    expect(chat.get_by_label("New reminder")).to_have_value("")
    expect(chat.locator("#notebook-error")).to_be_hidden()

    chat.get_by_label("New reminder").fill("Begun already")
    edit(chat, 2).fill("My own words, half")
    agent(scripted, "remove_reminder(dialog=dialog, number=2)")

    expect(reminders(chat)).to_have_count(0)
    expect(chat.get_by_label("New reminder")).to_have_value("Begun already\n\nMy own words, half")
    expect(chat.get_by_label("New reminder")).to_be_focused()
    expect(chat.locator("#notebook-error")).to_contain_text("Reminder 2 was removed meanwhile")


def test_a_person_and_an_agent_keep_one_notebook(chat: Page, scripted: Stack, faults: list[str]) -> None:
    # An edit begins from what is there now, and can be made twice.
    agent(scripted, "update_reminder(dialog=dialog, number=1, content='Bananas', author=agent)")
    expect(chat.locator("#reminder-1")).to_have_attribute("data-version", "2")
    for before, after in (("Bananas", "Cherries\nred"), ("Cherries\nred", "Dates")):
        field = edit(chat, 1)
        expect(field).to_have_value(before)
        field.fill(after)
        chat.locator("#reminder-1").get_by_role("button", name="Save").click()
        expect(chat.locator("#reminder-1 > .notebook-text")).to_have_text(after)
        expect(field).to_be_hidden()

    # A reminder is moved by keyboard, and the button keeps the focus.
    up = chat.get_by_role("button", name="Move reminder 2 up")
    up.press("Enter")
    expect(reminders(chat).first).to_contain_text("Pears")
    expect(up).to_be_focused()

    # The draft of a new one stays until it is added.
    field = chat.get_by_label("New reminder")
    field.fill("Buy nails")
    agent(scripted, "add_reminder(dialog=dialog, content='Figs', author=agent)")
    expect(reminders(chat)).to_have_count(3)
    expect(field).to_have_value("Buy nails")
    chat.get_by_role("button", name="Add", exact=True).click()
    expect(reminders(chat).last).to_contain_text("Buy nails")
    expect(field).to_have_value("")
    expect(chat.locator("#notebook-count")).to_have_text("4")

    # The Taskdoc is edited as text and shown as Markdown.
    chat.get_by_label("Edit the Taskdoc").click()
    chat.get_by_label("Taskdoc, in Markdown").fill("Build **the boat**.")
    chat.locator("#taskdoc").get_by_role("button", name="Save").click()
    expect(chat.locator("#taskdoc strong")).to_have_text("the boat")
    agent(scripted, "write_taskdoc(dialog=dialog, content='Build *it*.')")
    expect(chat.locator("#taskdoc em")).to_have_text("it")

    # Escape closes a form first, and the drawer then.
    field = edit(chat, 1)
    field.press("Escape")
    expect(field).to_be_hidden()
    expect(reminders(chat).first).to_be_visible()
    chat.keyboard.press("Escape")
    expect(reminders(chat).first).to_be_hidden()
    expect(chat.get_by_role("button", name="Reminders and Taskdoc")).to_be_focused()


def test_a_removed_reminder_is_one_key_away_though_the_sockets_news_come_first(chat: Page, faults: list[str]) -> None:
    chat.get_by_role("button", name="Remove reminder 1").press("Enter")
    expect(reminders(chat)).to_have_count(1)
    expect(chat.get_by_role("button", name="Undo")).to_be_focused()

    chat.keyboard.press("Enter")
    expect(reminders(chat)).to_have_count(2)
    expect(reminders(chat).last).to_contain_text("Apples")
    expect(chat.get_by_role("button", name="Undo")).to_be_hidden()

    def late(route: Route) -> None:
        answer = route.fetch()
        expect(reminders(chat)).to_have_count(1)
        route.fulfill(response=answer)

    chat.route("**/remove/", late)
    chat.get_by_role("button", name="Remove reminder 2").press("Enter")
    expect(chat.get_by_role("button", name="Undo")).to_be_focused()


def test_on_a_phone_it_lies_over_the_page(chat: Page, faults: list[str]) -> None:
    chat.emulate_media(color_scheme="dark")
    chat.keyboard.press("Escape")
    chat.set_viewport_size({"width": 390, "height": 844})

    chat.get_by_role("button", name="Reminders and Taskdoc").click()

    expect(chat.locator("dialog:modal")).to_have_attribute("id", "notebook-drawer")
    assert chat.evaluate("() => document.documentElement.scrollWidth") <= 390
    edit(chat, 2).fill("Oranges")
    chat.locator("#reminder-2").get_by_role("button", name="Save").click()
    expect(chat.locator("#reminder-2 > .notebook-text")).to_have_text("Oranges")
