"""Undo and redo: the exact earlier request comes back, with all that was said since; a draft holds once applied."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from dialogs.common.errors import DialogBusy, DialogError
from dialogs.compaction.reads.compaction_card import compaction_card
from dialogs.compaction.work import perform
from dialogs.compaction.writes.manual_compaction import request
from dialogs.compaction.writes.view_changes import apply_draft, redo, undo
from dialogs.context.border import chat_request
from dialogs.context.estimate import offered_tools, present_context, present_tokens
from dialogs.models import Course, Dialog, Message, ViewChange
from dialogs.providers.base import ChatRequest
from dialogs.turns.reads.turns import dialog_to_drive
from dialogs.turns.writes.messages import choose_branch, edit_message, post_message
from health.models import CompactionRun
from tests.builders import an_answer
from tests.dialogs.compacting_builders import a_history, long_text

Status = CompactionRun.Status


def next_request(dialog: Dialog) -> ChatRequest:
    fresh = dialog_to_drive(dialog.pk)
    return chat_request(present_context(fresh), tools=offered_tools(fresh))


def compacted(dialog: Dialog, by: User, *, preview: bool = False) -> CompactionRun:
    run = request(dialog=dialog, by=by, preview=preview)
    perform(run.pk, embedder="static")
    run.refresh_from_db()
    return run


def status_of(run: CompactionRun) -> str:
    run.refresh_from_db()
    return run.status


@dataclass(frozen=True)
class Edited:
    """Compacted twice, and then a message between the two was edited: the first view holds, the second was left.

    `left` is the message as it was, `request` what was sent on its branch.
    """

    first: CompactionRun
    second: CompactionRun
    left: Message
    request: ChatRequest


@pytest.fixture
def edited(alice: User, dialog: Dialog, history: None) -> Edited:
    first = compacted(dialog, alice)
    dialog.refresh_from_db()
    left = a_history(dialog, pairs=12)[-2]
    second = compacted(dialog, alice)
    request = next_request(dialog)
    assert [status_of(first), status_of(second)] == [Status.APPLIED, Status.APPLIED]
    dialog.refresh_from_db()
    edit_message(dialog=dialog, message=left, content="Rather something else.")
    an_answer(dialog, long_text(77, 100))
    return Edited(first, second, left, request)


@pytest.fixture(autouse=True)
def history(dialog: Dialog) -> None:
    a_history(dialog, pairs=12)


def test_undo_restores_the_exact_earlier_request_and_redo_lets_the_view_hold_again(alice: User, dialog: Dialog) -> None:
    before = next_request(dialog)
    run = compacted(dialog, alice)
    small = next_request(dialog)
    assert small != before

    undo(dialog=dialog, run_id=run.pk, by=alice)
    assert status_of(run) == Status.UNDONE
    assert next_request(dialog) == before

    redo(dialog=dialog, run_id=run.pk, by=alice)
    assert status_of(run) == Status.APPLIED
    assert next_request(dialog) == small
    assert list(ViewChange.objects.values_list("why", flat=True)) == ["applied", "undone", "redone"]


def test_undo_keeps_what_was_said_since_and_its_card_shows_what_the_model_sees_now(alice: User, dialog: Dialog) -> None:
    before, since = next_request(dialog), [long_text(2000), "Now it rains."]
    run = compacted(dialog, alice)
    dialog.refresh_from_db()
    post_message(dialog=dialog, content=since[0])
    an_answer(dialog, since[1])

    undo(dialog=dialog, run_id=run.pk, by=alice)

    after = next_request(dialog)
    assert after.messages[: len(before.messages)] == before.messages
    assert [message.content for message in after.messages[len(before.messages) :]] == since
    card = compaction_card(dialog_to_drive(dialog.pk))
    assert card is not None
    seen = present_tokens(dialog_to_drive(dialog.pk)) + run.reserve_tokens
    assert seen > (run.estimated_before or 0)
    assert card.progress == min(100, int(seen / run.limit_tokens * 100 + 0.5))
    assert not card.details.holds


def test_only_the_newest_compaction_can_be_undone(alice: User, dialog: Dialog) -> None:
    first = compacted(dialog, alice)
    dialog.refresh_from_db()
    a_history(dialog, pairs=12)
    second = compacted(dialog, alice)
    assert (status_of(first), status_of(second)) == (Status.APPLIED, Status.APPLIED)

    with pytest.raises(DialogError, match="newest"):
        undo(dialog=dialog, run_id=first.pk, by=alice)
    undo(dialog=dialog, run_id=second.pk, by=alice)
    undo(dialog=dialog, run_id=first.pk, by=alice)

    assert Course.objects.get().head_run is None


def test_what_holds_after_an_edit_can_be_undone_and_redone_and_no_other_view(
    alice: User, dialog: Dialog, edited: Edited
) -> None:
    """The later compaction is of a branch that the edit left: it must not stand in the way."""
    before = next_request(dialog)
    with pytest.raises(DialogError, match="newest"):
        undo(dialog=dialog, run_id=edited.second.pk, by=alice)

    undo(dialog=dialog, run_id=edited.first.pk, by=alice)

    assert [status_of(edited.first), status_of(edited.second)] == [Status.UNDONE, Status.APPLIED]
    assert len(next_request(dialog).messages) > len(before.messages)
    redo(dialog=dialog, run_id=edited.first.pk, by=alice)
    assert next_request(dialog) == before
    changes = ViewChange.objects.order_by("-id").values_list("before", "after")[:2]
    assert list(changes) == [(None, edited.first.pk), (edited.first.pk, None)]


def test_the_version_that_was_left_keeps_its_view_until_that_is_undone_too(
    alice: User, dialog: Dialog, edited: Edited
) -> None:
    undo(dialog=dialog, run_id=edited.first.pk, by=alice)

    choose_branch(dialog=dialog, message=edited.left)
    assert next_request(dialog) == edited.request

    undo(dialog=dialog, run_id=edited.second.pk, by=alice)
    assert [status_of(edited.first), status_of(edited.second)] == [Status.UNDONE, Status.UNDONE]
    said = [message.pk for message in present_context(dialog_to_drive(dialog.pk)).branch]
    assert [entry.message_id for entry in present_context(dialog_to_drive(dialog.pk)).view or ()] == said


def test_a_compaction_after_such_an_undo_stands_in_the_way_of_redo(alice: User, dialog: Dialog, edited: Edited) -> None:
    undo(dialog=dialog, run_id=edited.first.pk, by=alice)
    third = compacted(dialog, alice)
    assert status_of(third) == Status.APPLIED

    with pytest.raises(DialogError, match="Another compaction"):
        redo(dialog=dialog, run_id=edited.first.pk, by=alice)
    undo(dialog=dialog, run_id=third.pk, by=alice)
    redo(dialog=dialog, run_id=edited.first.pk, by=alice)

    assert status_of(edited.first) == Status.APPLIED


def test_a_draft_made_before_such_an_undo_does_not_hold_after_it(alice: User, dialog: Dialog, edited: Edited) -> None:
    draft = compacted(dialog, alice, preview=True)
    assert status_of(draft) == Status.DRAFT
    undo(dialog=dialog, run_id=edited.first.pk, by=alice)

    with pytest.raises(DialogError, match="another way"):
        apply_draft(dialog=dialog, run_id=draft.pk, by=alice)


def test_a_change_made_before_the_clock_went_back_stands_in_no_compactions_way(
    alice: User, dialog: Dialog, history: None
) -> None:
    """Nothing could be compacted until the clock had caught up, and what did not fit was refused."""
    undo(dialog=dialog, run_id=compacted(dialog, alice).pk, by=alice)
    ViewChange.objects.update(changed_at=timezone.now() + timedelta(hours=1))

    assert status_of(compacted(dialog, alice)) == Status.APPLIED


def test_nothing_is_undone_while_the_agent_answers(alice: User, dialog: Dialog) -> None:
    run = compacted(dialog, alice)
    dialog.refresh_from_db()
    post_message(dialog=dialog, content="And now?")

    with pytest.raises(DialogBusy):
        undo(dialog=dialog, run_id=run.pk, by=alice)

    assert status_of(run) == Status.APPLIED


def test_a_run_of_another_dialog_is_out_of_reach(alice: User, bob: User, dialog: Dialog) -> None:
    run = compacted(dialog, alice)
    theirs = Dialog.objects.create(owner=bob, agent=dialog.agent, llm=dialog.llm, active_at=dialog.active_at)

    with pytest.raises(DialogError):
        undo(dialog=theirs, run_id=run.pk, by=bob)

    assert status_of(run) == Status.APPLIED
