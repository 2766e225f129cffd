"""The archive in a real Chromium: what a real compaction took away is found, read and brought back; and the budget."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.accessibility import assert_readable, violations
from tests.e2e.steps import DESK, PHONE, answers, ask, begin_dialog, get_answer, play
from tests.stack import Stack

pytestmark = pytest.mark.e2e

ROWS = """
from dialogs.models import LLM, Agent, Provider
provider = Provider.objects.create(name="scripted", kind="scripted", base_url="script.json")
llm = LLM.objects.create(provider=provider, model_id="tiny", context_length=32_000)
Agent.objects.create(name="Helper", slug="helper", llm=llm, context_budget=True, context_limit=3_500)
"""
# A long past, and what the next message makes the guard take away of it.
PAST = """
from dialogs.models import Dialog
from tests.dialogs.compacting_builders import a_history
a_history(Dialog.objects.latest("created_at"), pairs=24)
"""
SENT = """
from dialogs.context.estimate import present_context
from dialogs.models import Dialog
from dialogs.turns.reads.turns import dialog_to_drive
dialog = Dialog.objects.latest("created_at")
print("\\n".join(piece.content for piece in present_context(dialog_to_drive(dialog.pk)).pieces))
"""


@pytest.fixture(scope="module")
def guarded(stack: Stack) -> Stack:
    play(stack, {"text": "Noted."})
    stack.shell(ROWS)
    return stack


@pytest.fixture
def chat(page: Page, guarded: Stack, faults: list[str]) -> Page:
    """A dialog whose past was compacted before its last message was answered."""
    begin_dialog(page, guarded)
    guarded.shell(PAST)
    # Written behind the server's back: nobody told the page.
    page.reload()
    page.wait_for_load_state()
    ask(page, "Go on with the rotor.")
    expect(answers(page).last).to_contain_text("Noted.")
    return page


def assert_readable_on_a_phone(page: Page) -> None:
    page.set_viewport_size(PHONE)
    assert_readable(page, ".archive")
    page.set_viewport_size(DESK)


def test_what_was_compacted_is_found_and_brought_back_and_the_panel_shows_what_that_takes(
    chat: Page, guarded: Stack
) -> None:
    there = chat.url
    open_the_archive(chat)
    bring_one_back(chat, guarded)

    chat.goto(there)
    follow_the_budget(chat)
    compare_what_it_would_still_know(chat)


def open_the_archive(page: Page) -> None:
    page.get_by_label("Dialog actions").click()
    page.get_by_role("link", name="What it no longer sees").click()
    expect(page.get_by_role("heading", name="What it no longer sees")).to_be_visible()
    for details in page.locator(".archive-losses > summary").all():
        details.click()
    assert_readable_on_a_phone(page)


def bring_one_back(page: Page, stack: Stack) -> None:
    page.get_by_label("Search what it no longer sees").fill("reading question")
    page.get_by_label("Search what it no longer sees").press("Enter")
    expect(page.get_by_role("heading", name="Found for “reading question”")).to_be_visible()
    first = page.locator(".archive-item").first
    text = first.locator(".archive-text").inner_text()
    dom_id = first.get_attribute("id")
    assert text not in stack.shell(SENT)

    page.wait_for_load_state()
    first.get_by_role("button", name="Bring back").press("Enter")
    expect(page.locator("#messages")).to_contain_text("Brought back")
    expect(page.locator(f"#{dom_id}")).to_have_count(0)
    assert text in stack.shell(SENT)


def follow_the_budget(page: Page) -> None:
    page.get_by_role("button", name="Context health: show every number").click()
    budget = page.locator("#budget")
    expect(budget).to_contain_text(re.compile(r"≈[\d,]+ / 3,500"))
    expect(budget).to_contain_text("Effective limit")
    before = budget.locator(".budget-sum").inner_text()
    get_answer(page, "Something more to say, which takes some room in the budget of the next request.")
    expect(budget.locator(".budget-sum")).not_to_have_text(before)
    assert violations(page, "#budget") == []
    page.keyboard.press("Escape")


def compare_what_it_would_still_know(page: Page) -> None:
    page.get_by_label("Dialog actions").click()
    page.get_by_role("link", name="What would it still know?").click()
    expect(page.locator(".known-counts > div")).to_have_count(1)
    page.get_by_label("Limit (tokens)").fill("1200")
    page.get_by_label("Limit (tokens)").press("Enter")
    expect(page.locator(".known-counts > div")).to_have_count(2)
    expect(page.locator(".archive-item").filter(has_text="compacted: no longer seen by it").first).to_be_visible()
    assert_readable_on_a_phone(page)
