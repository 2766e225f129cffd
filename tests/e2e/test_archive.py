"""The archive in a real Chromium: what a real compaction took away is found, read and brought back; and the budget."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.e2e.accessibility import assert_readable, violations
from tests.e2e.steps import answers, ask, begin_dialog, get_answer, play
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
from dialogs.context.present import present_context
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


DESK, PHONE = ViewportSize(width=1280, height=800), ViewportSize(width=390, height=844)


def assert_readable_on_a_phone(page: Page) -> None:
    page.set_viewport_size(PHONE)
    assert_readable(page, ".archive")
    page.set_viewport_size(DESK)


def test_what_was_compacted_is_found_and_brought_back(chat: Page, guarded: Stack) -> None:
    chat.get_by_label("Dialog actions").click()
    chat.get_by_role("link", name="What it no longer sees").click()
    expect(chat.get_by_role("heading", name="What it no longer sees")).to_be_visible()
    for details in chat.locator(".archive-losses > summary").all():
        details.click()
    assert_readable_on_a_phone(chat)

    chat.get_by_label("Search what it no longer sees").fill("reading question")
    chat.get_by_label("Search what it no longer sees").press("Enter")
    expect(chat.get_by_role("heading", name="Found for “reading question”")).to_be_visible()
    first = chat.locator(".archive-item").first
    text = first.locator(".archive-text").inner_text()
    dom_id = first.get_attribute("id")
    assert text not in guarded.shell(SENT)

    chat.wait_for_load_state()
    first.get_by_role("button", name="Bring back").press("Enter")
    expect(chat.locator("#messages")).to_contain_text("Brought back")
    expect(chat.locator(f"#{dom_id}")).to_have_count(0)
    assert text in guarded.shell(SENT)


def test_the_panel_shows_the_budget_and_a_page_what_the_model_would_still_know(chat: Page) -> None:
    chat.get_by_role("button", name="Context health: show every number").click()
    budget = chat.locator("#budget")
    expect(budget).to_contain_text(re.compile(r"≈[\d,]+ / 3,500"))
    expect(budget).to_contain_text("Effective limit")
    before = budget.locator(".budget-sum").inner_text()
    get_answer(chat, "Something more to say, which takes some room in the budget of the next request.")
    expect(budget.locator(".budget-sum")).not_to_have_text(before)
    assert violations(chat, "#budget") == []
    chat.keyboard.press("Escape")

    chat.get_by_label("Dialog actions").click()
    chat.get_by_role("link", name="What would it still know?").click()
    expect(chat.locator(".known-counts > div")).to_have_count(1)
    chat.get_by_label("Limit (tokens)").fill("1200")
    chat.get_by_label("Limit (tokens)").press("Enter")
    expect(chat.locator(".known-counts > div")).to_have_count(2)
    expect(chat.locator(".archive-item").filter(has_text="compacted: no longer seen by it").first).to_be_visible()
    assert_readable_on_a_phone(chat)
