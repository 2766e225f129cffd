"""Compactions at a person's word: now, up to a message, from the beginning; and when they cannot begin."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from dialogs.common.errors import DialogBusy, DialogError
from dialogs.compaction.work import perform
from dialogs.compaction.writes import manual_compaction
from dialogs.compaction.writes.manual_compaction import request, reset
from dialogs.context.estimate import present_context
from dialogs.models import CompactionDisplay, Dialog, Message
from dialogs.models.message import MessageOrigin, Role
from dialogs.transcript.writes.dialog_row import add_message
from dialogs.turns.reads.turns import dialog_to_drive
from dialogs.turns.writes.messages import post_message
from health.models import CompactionRun
from tests.builders import a_course
from tests.dialogs.compacting_builders import RULE, a_history, estimated, guard, long_text

Status = CompactionRun.Status


def sent(dialog: Dialog) -> list[str]:
    """The texts that the next request would send after the system message."""
    return [piece.content for piece in present_context(dialog_to_drive(dialog.pk)).pieces]


def done(run: CompactionRun) -> CompactionRun:
    perform(run.pk, embedder="static")
    run.refresh_from_db()
    return run


def test_compacting_now_frees_at_least_a_quarter_and_touches_no_message(
    alice: User, dialog: Dialog, history: list[Message]
) -> None:
    before, rows = estimated(dialog), list(Message.objects.values())

    run = done(request(dialog=dialog, by=alice, focus="The rotor"))

    assert (run.status, run.trigger, run.requested_by, run.focus) == (Status.APPLIED, "manual", alice, "The rotor")
    assert estimated(dialog) <= 0.75 * before
    assert any(RULE in text for text in sent(dialog))
    assert list(Message.objects.values()) == rows
    assert len(rows) == len(history)


@pytest.mark.usefixtures("history")
@pytest.mark.parametrize("focus", ["", "The rotor", "Hotels and flights"])
def test_whatever_the_focus_a_rule_stated_on_the_way_stays(alice: User, dialog: Dialog, focus: str) -> None:
    stated = "I am allergic to peanuts. Never book a flight before 2027-03-20."
    add_message(dialog, role=Role.USER, origin=MessageOrigin.TYPED, content=stated, parent=dialog.current_leaf)
    a_history(dialog, pairs=8)

    runs = [done(request(dialog=dialog, by=alice, focus=focus)) for _time in range(2)]

    assert [run.status for run in runs] == [Status.APPLIED] * 2
    assert "Never book a flight before 2027-03-20." in "\n".join(sent(dialog))


def test_up_to_here_leaves_what_was_said_later_as_it_is(alice: User, dialog: Dialog, history: list[Message]) -> None:
    run = done(request(dialog=dialog, by=alice, up_to=history[13]))

    later = [message.content for message in history[14:]]
    assert run.status == Status.APPLIED
    assert sent(dialog)[-len(later) :] == later
    assert not {message.pk for message in history[14:]} & set(run.removed)
    assert run.removed


def test_a_preview_changes_nothing_until_it_is_applied_and_a_newer_one_takes_its_place(
    alice: User, dialog: Dialog, history: list[Message]
) -> None:
    before = sent(dialog)

    run = done(request(dialog=dialog, by=alice, preview=True))

    assert (run.status, run.draft_until) == (Status.DRAFT, None)
    assert run.view
    assert sent(dialog) == before
    assert len(before) == len(history)

    new = done(request(dialog=dialog, by=alice, preview=True))

    run.refresh_from_db()
    assert (run.status, new.status) == (Status.CANCELLED, Status.DRAFT)


@pytest.mark.usefixtures("history")
def test_who_reviews_summaries_gets_a_draft_with_all_the_time(alice: User, dialog: Dialog) -> None:
    CompactionDisplay.objects.create(user=alice, review_drafts=True)

    run = request(dialog=dialog, by=alice)
    CompactionRun.objects.filter(pk=run.pk).update(queued_at=timezone.now() - timedelta(seconds=300))
    run = done(run)

    assert run.status == Status.DRAFT
    assert run.draft_until is not None
    assert run.finished_at is not None
    assert (run.draft_until - run.finished_at).total_seconds() >= manual_compaction.REVIEW_SECONDS


def test_a_reset_leaves_a_handover_and_what_must_stay(alice: User, dialog: Dialog, history: list[Message]) -> None:
    before = estimated(dialog)

    run = done(reset(dialog=dialog, by=alice))

    kinds = [entry.get("kind", "") for entry in run.view]
    assert (run.status, run.trigger) == (Status.APPLIED, "reset")
    assert kinds.count("handover") == 1
    assert len(sent(dialog)) < len(history) / 2
    assert any(RULE in text for text in sent(dialog))
    assert estimated(dialog) < before


def test_a_reset_of_a_short_chat_takes_the_confused_answer_away(alice: User, dialog: Dialog) -> None:
    question, answer = a_history(dialog, pairs=1, sentences=1)

    run = done(reset(dialog=dialog, by=alice))

    assert (run.status, run.removed) == (Status.APPLIED, [answer.pk])
    assert question.content in sent(dialog)
    assert answer.content not in sent(dialog)


@pytest.mark.parametrize(("pairs", "told"), [(1, "begins afresh with"), (20, "reduced to")])
def test_a_reset_says_reduced_only_where_less_is_left(alice: User, dialog: Dialog, pairs: int, told: str) -> None:
    """What is written down of a short chat may be more than that was."""
    a_history(dialog, pairs=pairs, sentences=1)

    run = done(reset(dialog=dialog, by=alice))

    assert run.status == Status.APPLIED
    assert (run.estimated_after or 0) < run.estimated_before or pairs == 1
    assert told in run.reason


def test_a_reset_ends_where_the_guard_does_not_compact_it_again(alice: User, dialog: Dialog) -> None:
    guard(dialog)
    tell(dialog, long_text(90, 44))
    a_history(dialog, pairs=12)
    tell(dialog, long_text(91, 44))

    run = done(reset(dialog=dialog, by=alice))

    assert run.status == Status.APPLIED
    assert estimated(dialog) <= 0.8 * 3500


def test_a_reset_of_a_long_dialog_carries_no_more_along_than_of_a_short_one(alice: User, dialog: Dialog) -> None:
    guard(dialog)
    for number in range(60):
        tell(dialog, "\n".join(f"Order {number}-{row} of C{row} costs {number}.{row:02} EUR." for row in range(30)))

    run = done(reset(dialog=dialog, by=alice))

    assert run.status == Status.APPLIED
    assert estimated(dialog) <= 0.6 * 3500


def tell(dialog: Dialog, text: str) -> None:
    parent = dialog.current_leaf
    add_message(dialog, role=Role.USER, origin=MessageOrigin.TYPED, content=text, parent=parent)
    add_message(dialog, role=Role.ASSISTANT, origin=MessageOrigin.AGENT, content="Noted.", parent=dialog.current_leaf)
    dialog.save()


def test_nothing_begins_in_the_trash_nor_while_the_agent_answers(
    alice: User, dialog: Dialog, history: list[Message]
) -> None:
    Dialog.objects.update(trashed_at=timezone.now())
    with pytest.raises(DialogError, match="trash"):
        request(dialog=dialog, by=alice)
    Dialog.objects.update(trashed_at=None)
    post_message(dialog=dialog, content="Hello")

    for begin in (request, reset):
        with pytest.raises(DialogBusy):
            begin(dialog=dialog, by=alice)
    assert history


def test_a_message_of_an_earlier_course_is_no_place_to_compact_to(
    alice: User, dialog: Dialog, history: list[Message]
) -> None:
    a_course(dialog)

    with pytest.raises(DialogError, match="current course"):
        request(dialog=dialog, by=alice, up_to=history[3])
