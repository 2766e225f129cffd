"""Compaction in the transcript, in a real Chromium: dividers updated in place, and all that a person decides."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.accessibility import violations
from tests.e2e.steps import PATIENCE_MS, ask, begin_dialog, play, send
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
from dialogs.context.present import present_context
from dialogs.models import Dialog
from dialogs.turns.reads.turns import dialog_to_drive
context = present_context(dialog_to_drive(Dialog.objects.latest("created_at").pk))
print("\\n".join(piece.content for piece in context.pieces))
"""
CUT = """
from django.db import transaction
from dialogs.models import Dialog
from dialogs.models.message import MessageOrigin, Role
from dialogs.transcript.writes.dialog_row import add_message, save
from tests.builders import an_answer
from tests.dialogs.compaction_runs import an_applied_run
with transaction.atomic():
    dialog = Dialog.objects.latest("created_at")
    add_message(dialog, role=Role.USER, origin=MessageOrigin.TYPED, content="Tell me", parent=None)
    dialog.save()
    half = an_answer(dialog, "Once upon", finish_reason="compaction")
    half.cut_short = True
    half.save()
    add_message(dialog, role=Role.USER, origin=MessageOrigin.CONTINUATION, content="Go on from there.", parent=half)
    dialog.save()
    an_applied_run(dialog, trigger="stream", view=[{"message": half.pk}])
    an_answer(dialog, " a time.")
    dialog.refresh_from_db()
    save(dialog)
"""


@pytest.fixture(scope="module")
def scripted(stack: Stack) -> Stack:
    play(stack, {"text": "fine"})
    stack.shell(ROWS)
    return stack


@pytest.fixture
def fresh(page: Page, scripted: Stack, faults: list[str]) -> Page:
    """An empty dialog's page."""
    begin_dialog(page, scripted)
    assert faults == []
    return page


@pytest.fixture
def chat(fresh: Page, scripted: Stack) -> Page:
    """The page of a dialog with a long history."""
    scripted.shell(HISTORY)
    fresh.reload()
    fresh.wait_for_load_state()
    return fresh


def divider(page: Page, state: str) -> Locator:
    return page.locator(f'.divider[data-state="{state}"]')


def compact(page: Page, *, preview: bool = False) -> None:
    """By keyboard alone, from the dialog's menu."""
    page.get_by_label("Dialog actions").focus()
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Compact now…").press("Enter")
    expect(page.get_by_label("What to keep in mind (optional)")).to_be_focused()
    page.keyboard.type("the rotor")
    if preview:
        page.get_by_label("Show me a preview first").press("Space")
    page.get_by_role("button", name="Compact now").press("Enter")


def test_a_person_compacts_undoes_and_redoes_by_keyboard(chat: Page, scripted: Stack) -> None:
    whole = scripted.shell(SENT)
    compact(chat)

    done = divider(chat, "applied")
    expect(done).to_contain_text("Context compacted", timeout=PATIENCE_MS)
    expect(done).to_contain_text("24 →")
    expect(chat.locator(".message-row.removed").first).to_contain_text("no longer seen")
    small = scripted.shell(SENT)
    assert len(small) < len(whole)

    done.get_by_text("What was written instead").press("Enter")
    expect(done).to_contain_text("the rotor")
    done.get_by_role("link", name="Show what the model saw").press("Enter")
    expect(chat.get_by_role("heading", name="What the model saw")).to_be_visible()
    assert violations(chat, ".seen-modal") == []
    chat.keyboard.press("Escape")
    assert violations(chat, ".dialog-column") == []

    done.get_by_role("button", name="Undo").press("Enter")
    expect(divider(chat, "undone")).to_be_visible()
    expect(chat.locator(".message-row.removed")).to_have_count(0)
    assert scripted.shell(SENT) == whole
    divider(chat, "undone").get_by_role("button", name="Redo").press("Enter")
    expect(done).to_be_visible()
    assert scripted.shell(SENT) == small


def test_a_preview_whose_clock_an_edit_stops_is_discarded_made_again_and_applied(chat: Page, scripted: Stack) -> None:
    scripted.shell(REVIEW)
    compact(chat)
    draft = divider(chat, "draft")
    words = draft.get_by_role("textbox").first
    expect(words).to_be_visible(timeout=PATIENCE_MS)
    words.focus()
    expect(draft.locator(".divider-clock")).to_have_count(0)
    expect(words).to_be_focused()
    chat.keyboard.type("Mine. ")
    expect(words).to_have_value(re.compile(r"^Mine\. |Mine\. $"))
    draft.get_by_role("button", name="Discard").click()
    expect(divider(chat, "cancelled")).to_be_visible()
    scripted.shell(REVIEW.replace("True", "False"))

    compact(chat, preview=True)
    expect(words).to_be_visible(timeout=PATIENCE_MS)
    assert violations(chat, ".divider") == []
    words.fill("What I want it to know.")
    draft.get_by_role("button", name="Apply").press("Enter")
    expect(divider(chat, "applied")).to_be_visible()
    assert "What I want it to know." in scripted.shell(SENT)


def test_a_preview_that_nobody_touches_applies_itself(chat: Page, scripted: Stack) -> None:
    scripted.shell(REVIEW)
    compact(chat)
    draft = divider(chat, "draft")
    expect(draft.locator(".divider-clock")).to_contain_text("It applies itself in", timeout=PATIENCE_MS)

    scripted.shell(HURRY)

    expect(divider(chat, "applied")).to_be_visible(timeout=PATIENCE_MS)
    scripted.shell(REVIEW.replace("True", "False"))


def test_a_message_is_pinned_and_tagged_by_keyboard_and_another_is_the_end_of_what_is_compacted(
    chat: Page, scripted: Stack
) -> None:
    row = chat.locator(".message-row.assistant").nth(4)
    menu = row.get_by_label("Message actions")
    menu.press("Enter")
    row.get_by_role("button", name="Pin: never compact this").press("Enter")
    expect(row.locator(".pill-pinned")).to_be_visible()
    expect(menu).to_be_focused()

    menu.press("Enter")
    row.get_by_label("Priority").select_option("1")
    row.get_by_label("Area").fill("To Do List")
    row.get_by_label("Area").press("Enter")
    expect(row.locator(".pill-priority")).to_have_text("P1: To Do List")
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


def test_the_agents_chat_is_reset_and_goes_on(chat: Page, scripted: Stack) -> None:
    chat.get_by_label("Dialog actions").click()
    chat.get_by_role("link", name="Reset Agent Chat…").click()
    assert violations(chat, "dialog.modal") == []
    chat.get_by_role("button", name="Reset Agent Chat").click()

    expect(divider(chat, "reset")).to_contain_text("goes on from a handover", timeout=PATIENCE_MS)
    chat.wait_for_load_state()
    ask(chat, "And now?")
    assert "Never deploy on a Friday" in scripted.shell(SENT)


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


def test_an_answer_that_was_cut_reads_as_one(fresh: Page, scripted: Stack) -> None:
    scripted.shell(CUT)
    fresh.reload()
    fresh.wait_for_load_state()

    half, rest = fresh.locator(".message-row.assistant").all()
    expect(fresh.locator(".message-row")).to_have_count(3)
    expect(divider(fresh, "continued")).to_contain_text("Context compacted, continuing...")
    expect(half.locator(".message-foot")).to_have_count(0)
    expect(rest.locator(".message-foot")).to_be_visible()
    expect(fresh.get_by_text("Go on from there.")).to_have_count(0)
    expect(fresh.get_by_text("stopped")).to_have_count(0)
    assert rest.locator("template.source").evaluate("node => node.content.textContent") == "Once upon a time."
