"""Compaction in the transcript, in a real Chromium: dividers updated in place, and all that a person decides."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.e2e.accessibility import violations
from tests.e2e.steps import PATIENCE_MS, ask, begin_dialog, play, send, sign_in
from tests.stack import Stack

pytestmark = pytest.mark.e2e

ROWS = """
from dialogs.models import LLM, Agent, Provider
provider = Provider.objects.create(name="scripted", kind="scripted", base_url="script.json")
llm = LLM.objects.create(provider=provider, model_id="tiny", context_length=100_000, context_length_source="admin")
Agent.objects.create(name="Helper", slug="helper", llm=llm)
"""
HISTORY = """
from dialogs.models import Dialog
from dialogs.transcript.writes.dialog_row import save
from tests.dialogs.compacting_builders import a_history
dialog = Dialog.objects.latest("created_at")
a_history(dialog, pairs=12)
save(dialog, "last_seq")
"""
REVIEW = """
from django.contrib.auth.models import User
from dialogs.models import CompactionDisplay
CompactionDisplay.objects.update_or_create(user=User.objects.get(username="admin"), defaults={"review_drafts": True})
"""
GUARDED = """
from dialogs.models import Agent
Agent.objects.filter(slug="helper").update(context_budget=True, context_limit=3500)
"""
HURRY = """
from datetime import timedelta
from django.utils import timezone
from health.models import CompactionRun
CompactionRun.objects.filter(status="draft").update(draft_until=timezone.now() + timedelta(seconds=1))
"""
SENT = """
from dialogs.context.estimate import present_context
from dialogs.models import Dialog
from dialogs.turns.reads.turns import dialog_to_drive
context = present_context(dialog_to_drive(Dialog.objects.latest("created_at").pk))
print("\\n".join(piece.content for piece in context.pieces))
"""


@pytest.fixture(scope="module")
def scripted(stack: Stack) -> Stack:
    play(stack, {"text": "fine"})
    stack.shell(ROWS)
    return stack


@pytest.fixture
def chat(page: Page, scripted: Stack, faults: list[str]) -> Page:
    """The page of a dialog with a long history."""
    begin_dialog(page, scripted)
    assert faults == []
    scripted.shell(HISTORY)
    page.reload()
    page.wait_for_load_state()
    return page


def divider(page: Page, state: str) -> Locator:
    return page.locator(f'.divider[data-state="{state}"]')


def leave_and_come_back(page: Page) -> None:
    """Escape, pressed by chance: what was typed is there again."""
    field = page.get_by_label("What to keep in mind (optional)")
    page.keyboard.press("Escape")
    expect(field).to_have_count(0)
    page.get_by_label("Dialog actions").press("Enter")
    page.get_by_role("link", name="Compact now…").press("Enter")
    expect(field).to_have_value("the ")
    expect(field).to_be_focused()
    page.keyboard.press("End")


def compact(page: Page, *, preview: bool = False) -> None:
    """By keyboard alone, from the dialog's menu."""
    page.get_by_label("Dialog actions").focus()
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Compact now…").press("Enter")
    expect(page.get_by_label("What to keep in mind (optional)")).to_be_focused()
    page.keyboard.type("the ")
    leave_and_come_back(page)
    page.keyboard.type("rotor")
    if preview:
        page.get_by_label("Show me a preview first").press("Space")
    page.get_by_role("button", name="Compact now").press("Enter")


def test_a_person_compacts_undoes_and_redoes_by_keyboard_and_resets_the_agents_chat(
    chat: Page, scripted: Stack
) -> None:
    whole = scripted.shell(SENT)
    compact(chat)
    see_what_went(chat)
    # It was accepted, so it is a draft no longer.
    assert chat.evaluate("Object.keys(sessionStorage).filter(key => key.includes('compact'))") == []
    small = scripted.shell(SENT)
    assert len(small) < len(whole)
    read_what_was_written_and_seen(chat)

    undo(chat)
    assert scripted.shell(SENT) == whole
    redo(chat)
    assert scripted.shell(SENT) == small

    reset(chat)
    assert "Never deploy on a Friday" in scripted.shell(SENT)


def see_what_went(page: Page) -> None:
    done = divider(page, "applied")
    expect(done).to_contain_text("Context compacted", timeout=PATIENCE_MS)
    expect(done).to_contain_text("24 →")
    expect(page.locator(".message-row.removed").first).to_contain_text("no longer seen")


def read_what_was_written_and_seen(page: Page) -> None:
    done = divider(page, "applied")
    done.get_by_text("What was written instead").press("Enter")
    expect(done).to_contain_text("the rotor")
    done.get_by_role("link", name="Show what the model saw").press("Enter")
    expect(page.get_by_role("heading", name="What the model saw")).to_be_visible()
    assert violations(page, ".seen-modal") == []
    page.keyboard.press("Escape")
    assert violations(page, ".dialog-column") == []


def undo(page: Page) -> None:
    divider(page, "applied").get_by_role("button", name="Undo").press("Enter")
    expect(divider(page, "undone")).to_be_visible()
    expect(page.locator(".message-row.removed")).to_have_count(0)


def redo(page: Page) -> None:
    divider(page, "undone").get_by_role("button", name="Redo").press("Enter")
    expect(divider(page, "applied")).to_be_visible()


def reset(page: Page) -> None:
    page.get_by_label("Dialog actions").click()
    page.get_by_role("link", name="Reset Agent Chat…").click()
    assert violations(page, "dialog.modal") == []
    page.get_by_role("button", name="Reset Agent Chat").click()
    expect(divider(page, "reset")).to_contain_text("goes on from a handover", timeout=PATIENCE_MS)
    page.wait_for_load_state()
    ask(page, "And now?")


def test_a_preview_applies_itself_unless_a_person_edits_it_and_discards_or_applies_it(
    chat: Page, scripted: Stack
) -> None:
    scripted.shell(REVIEW)
    compact(chat)
    let_it_apply_itself(chat, scripted)
    undo(chat)

    compact(chat)
    edit_and_discard(chat)
    scripted.shell(REVIEW.replace("True", "False"))

    compact(chat, preview=True)
    rewrite_and_apply(chat)
    assert "What I want it to know." in scripted.shell(SENT)


def let_it_apply_itself(page: Page, stack: Stack) -> None:
    expect(divider(page, "draft").locator(".divider-clock")).to_contain_text(
        "It applies itself in", timeout=PATIENCE_MS
    )
    stack.shell(HURRY)
    expect(divider(page, "applied")).to_be_visible(timeout=PATIENCE_MS)


def edit_and_discard(page: Page) -> None:
    """Who edits has all the time that it takes."""
    draft = divider(page, "draft")
    words = draft.get_by_role("textbox").first
    expect(words).to_be_visible(timeout=PATIENCE_MS)
    words.focus()
    expect(draft.locator(".divider-clock")).to_have_count(0)
    expect(words).to_be_focused()
    page.keyboard.type("Mine. ")
    expect(words).to_have_value(re.compile(r"^Mine\. |Mine\. $"))
    draft.get_by_role("button", name="Discard").click()
    expect(divider(page, "cancelled")).to_be_visible()


def rewrite_and_apply(page: Page) -> None:
    draft = divider(page, "draft")
    words = draft.get_by_role("textbox").first
    expect(words).to_be_visible(timeout=PATIENCE_MS)
    assert violations(page, ".divider") == []
    words.fill("What I want it to know.")
    draft.get_by_role("button", name="Apply").press("Enter")
    expect(divider(page, "applied")).to_be_visible()


def test_a_message_is_pinned_and_tagged_by_keyboard_and_another_is_the_end_of_what_is_compacted(
    chat: Page, scripted: Stack
) -> None:
    row = chat.locator(".message-row.assistant").nth(4)
    menu = row.get_by_label("Message actions")
    menu.press("Enter")
    row.get_by_role("button", name="Pin: never compact this").press("Enter")
    expect(row.locator(".pill-pinned")).to_be_visible()
    expect(chat.locator("#live-region")).to_contain_text("pinned")
    expect(menu).to_be_focused()

    menu.press("Enter")
    row.get_by_label("Priority").select_option("1")
    row.get_by_label("Area").fill("To Do List")
    row.get_by_label("Area").press("Enter")
    expect(row.locator(".pill-priority")).to_have_text("P1: To Do List")
    expect(chat.locator("#live-region")).to_contain_text("priority set")
    menu.press("Enter")
    expect(row.get_by_label("Priority")).to_have_value("1")
    expect(row.get_by_label("Area")).to_have_value("To Do List")
    assert violations(chat, ".message-row") == []
    row.get_by_label("Area").focus()
    chat.keyboard.press("Escape")
    expect(menu).to_be_focused()
    menu.press("Space")
    expect(row.get_by_role("button", name="Unpin")).to_be_visible()
    chat.keyboard.press("Escape")

    end = chat.locator(".message-row.user").nth(9)
    end.get_by_label("Message actions").press("Enter")
    end.get_by_role("button", name="Compact up to here").press("Enter")

    expect(divider(chat, "applied")).to_be_visible(timeout=PATIENCE_MS)
    expect(chat.locator(".message-row.user").nth(10)).not_to_contain_text("no longer seen")
    expect(chat.locator(".message-row.removed").first).to_be_attached()
    expect(row).not_to_contain_text("no longer seen")
    assert "Answer 4." in scripted.shell(SENT)


def test_a_task_that_is_done_is_followed_by_a_fresh_start(chat: Page) -> None:
    row = chat.locator(".message-row.user").nth(4)
    menu = row.get_by_label("Message actions")
    menu.press("Enter")
    row.get_by_label("Priority").select_option("1")
    row.get_by_role("button", name="Set priority").press("Enter")
    expect(row.locator(".pill-priority")).to_have_text("P1")

    menu.press("Enter")
    row.get_by_role("button", name="Task done").press("Enter")

    expect(chat.get_by_role("heading", name="The task is done. Begin afresh?")).to_be_visible()
    assert violations(chat, "dialog.modal") == []
    chat.get_by_role("button", name="Reset Agent Chat").press("Enter")
    expect(divider(chat, "reset")).to_contain_text("goes on from a handover", timeout=PATIENCE_MS)
    expect(row.locator(".pill-priority")).to_have_count(0)


def test_the_menu_of_a_message_fits_a_phone_and_works_without_script(
    chat: Page, scripted: Stack, browser: Browser
) -> None:
    chat.set_viewport_size({"width": 390, "height": 800})
    for row in (chat.locator(".message-row.user").nth(4), chat.locator(".message-row.assistant").nth(4)):
        row.get_by_label("Message actions").click()
        box = row.locator(".menu-panel").bounding_box()
        assert box
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
        chat.keyboard.press("Escape")

    context = browser.new_context(locale="en-US", java_script_enabled=False)
    page = context.new_page()
    sign_in(page, scripted, urlsplit(chat.url).path)
    row = page.locator(".message-row.assistant").nth(4)
    row.get_by_label("Message actions").click()
    row.get_by_role("link", name="Message actions").click()
    row.get_by_role("button", name="Pin: never compact this").click()

    expect(row.locator(".pill-pinned")).to_be_visible()
    context.close()


def test_the_guards_work_is_applied_from_its_card_while_the_turn_waits(chat: Page, scripted: Stack) -> None:
    scripted.shell(REVIEW + HISTORY + GUARDED)
    send(chat, "And now?")
    card = chat.locator("#compaction-card")
    expect(divider(chat, "draft")).to_contain_text("The request waits for it.", timeout=PATIENCE_MS)
    expect(chat.locator(".message-row.assistant", has_text="fine")).to_have_count(0)
    assert violations(chat, "#compaction-card") == []

    card.get_by_role("button", name="Apply").press("Enter")

    expect(divider(chat, "applied")).to_be_visible(timeout=PATIENCE_MS)
    expect(chat.locator(".message-row.assistant").last).to_contain_text("fine", timeout=PATIENCE_MS)
    scripted.shell(REVIEW.replace("True", "False") + GUARDED.replace("True", "False"))
