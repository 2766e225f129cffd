"""The archive in a real Chromium: what a real compaction took away is found, read and brought back; and the budget."""

from __future__ import annotations

import re
from typing import Literal

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.accessibility import violations
from tests.e2e.steps import answers, ask, begin_dialog, composer, play, sign_in
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
    sign_in(page, guarded)
    begin_dialog(page, guarded)
    guarded.shell(PAST)
    # Written behind the server's back: nobody told the page.
    page.reload()
    ask(page, "Go on with the rotor.")
    expect(answers(page).last).to_contain_text("Noted.")
    return page


def open_archive(page: Page) -> None:
    page.get_by_label("Dialog actions").click()
    page.get_by_role("link", name="What it no longer sees").click()
    expect(page.get_by_role("heading", name="What it no longer sees")).to_be_visible()


def test_what_was_compacted_is_found_and_brought_back(chat: Page, guarded: Stack) -> None:
    open_archive(chat)
    chat.get_by_label("Search what it no longer sees").fill("reading question")
    chat.get_by_label("Search what it no longer sees").press("Enter")
    expect(chat.get_by_role("heading", name="Found for “reading question”")).to_be_visible()
    first = chat.locator(".archive-item").first
    text = first.locator(".archive-text").inner_text()
    dom_id = first.get_attribute("id")
    assert text not in guarded.shell(SENT)

    first.get_by_role("button", name="Bring back").press("Enter")

    expect(chat.locator("#messages")).to_contain_text("Brought back")
    expect(chat.locator(f"#{dom_id}")).to_have_count(0)
    assert text in guarded.shell(SENT)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_nothing_is_cut_and_axe_finds_nothing_wrong(
    chat: Page, guarded: Stack, scheme: Literal["light", "dark"]
) -> None:
    open_archive(chat)
    chat.emulate_media(color_scheme=scheme)
    chat.set_viewport_size({"width": 390, "height": 844})
    for details in chat.locator(".archive-losses > summary").all():
        details.click()

    assert violations(chat, ".archive") == []
    assert chat.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_the_panel_shows_the_budget_beside_what_was_measured(chat: Page) -> None:
    chat.get_by_role("button", name="Context health: show every number").click()

    budget = chat.locator("#budget")
    expect(budget).to_contain_text(re.compile(r"≈[\d,]+ / 3,500"))
    expect(budget).to_contain_text("Effective limit")
    before = budget.locator(".budget-sum").inner_text()
    composer(chat).fill("Something more to say, which takes some room in the budget of the next request.")
    composer(chat).press("Enter")
    expect(budget.locator(".budget-sum")).not_to_have_text(before)
    assert violations(chat, "#budget") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_the_model_still_knows_is_told_for_now_and_for_another_limit(
    chat: Page, scheme: Literal["light", "dark"]
) -> None:
    chat.emulate_media(color_scheme=scheme)
    chat.get_by_label("Dialog actions").click()
    chat.get_by_role("link", name="What would it still know?").click()
    expect(chat.locator(".known-counts > div")).to_have_count(1)

    chat.get_by_label("Limit (tokens)").fill("1200")
    chat.get_by_label("Limit (tokens)").press("Enter")

    expect(chat.locator(".known-counts > div")).to_have_count(2)
    expect(chat.locator(".archive-item").filter(has_text="compacted: no longer seen by it").first).to_be_visible()
    assert violations(chat, ".archive") == []
    chat.set_viewport_size({"width": 390, "height": 844})
    assert chat.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
