"""What is pinned, or tagged P1, after it was left out stands in the view again: on pages, in requests, in records."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from dialogs.compaction import work
from dialogs.compaction.work import perform
from dialogs.compaction.writes.manual_compaction import request
from dialogs.compaction.writes.view_changes import redo, undo
from dialogs.context.border import chat_request
from dialogs.context.estimate import next_context, present_context
from dialogs.context.material import Material, material
from dialogs.context.reads import seen_by_generation
from dialogs.models import Dialog, Generation, Message
from dialogs.models.message import MessageOrigin, Role
from dialogs.pages.reads.rows import MessageRow
from dialogs.pages.reads.transcript import transcript
from dialogs.transcript.reads.archived_messages import archived_ids
from dialogs.transcript.writes.dialog_row import add_message
from dialogs.transcript.writes.marks import set_pin, set_priority
from dialogs.turns.reads.turns import dialog_to_drive
from dialogs.turns.writes.messages import edit_message
from health.models import CompactionRun
from tests.builders import a_call
from tests.dialogs.compacting_builders import a_history, guard
from tests.dialogs.driver.conftest import Play, ask, ask_and_drive, drive_until_idle, play, said

__all__ = ["Play", "play"]
Mark = Callable[[Dialog, Message], None]


def pinned(dialog: Dialog, message: Message) -> None:
    set_pin(dialog=dialog, message_id=message.pk, pinned=True)


def tagged(dialog: Dialog, message: Message) -> None:
    set_priority(dialog=dialog, message_id=message.pk, priority="1")


def compacted(dialog: Dialog, by: User) -> CompactionRun:
    run = request(dialog=Dialog.objects.get(pk=dialog.pk), by=by)
    perform(run.pk, embedder="static")
    run.refresh_from_db()
    assert run.status == CompactionRun.Status.APPLIED
    return run


def sent(dialog: Dialog) -> list[str]:
    """The texts that the next request sends, of which the driver reads no more than it needs."""
    part, whole = (read(dialog_to_drive(dialog.pk)) for read in (next_context, present_context))
    assert chat_request(part) == chat_request(whole)
    return [piece.content for piece in part.pieces]


@pytest.fixture
def history(dialog: Dialog) -> list[Message]:
    found = a_history(dialog, pairs=20)
    guard(dialog, 2_000)
    return found


@pytest.fixture
def run(alice: User, dialog: Dialog, history: list[Message]) -> CompactionRun:
    return compacted(dialog, alice)


@pytest.fixture
def lost(dialog: Dialog, run: CompactionRun, history: list[Message]) -> Message:
    """An answer of which the compaction left nothing."""
    answers = [one for one in history[5:] if one.role == Role.ASSISTANT and one.pk in archived_ids(dialog.pk)]
    stands = "\n".join(sent(dialog))
    return next(one for one in answers if one.content.partition(". ")[0] not in stands)


pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("mark", [pinned, tagged])
def test_it_is_sent_where_it_was_said_and_no_longer_dimmed(
    dialog: Dialog, lost: Message, history: list[Message], mark: Mark
) -> None:
    before = sent(dialog)

    mark(dialog, lost)

    assert sorted(sent(dialog)) == sorted([*before, lost.content])
    seqs = [piece.message.seq for piece in present_context(dialog_to_drive(dialog.pk)).pieces if piece.message]
    assert seqs == sorted(seqs)
    assert lost.pk not in archived_ids(dialog.pk)
    rows = transcript(Dialog.objects.get(pk=dialog.pk), limit=None).rows
    shown = {row.message.pk: row.visibility for row in rows if isinstance(row, MessageRow)}
    assert shown[lost.pk] is None


def test_without_its_mark_it_is_left_out_as_before(dialog: Dialog, lost: Message) -> None:
    before = sent(dialog)
    pinned(dialog, lost)

    set_pin(dialog=dialog, message_id=lost.pk, pinned=False)

    assert sent(dialog) == before
    assert lost.pk in archived_ids(dialog.pk)


def test_a_mark_that_only_orders_brings_nothing_back(dialog: Dialog, lost: Message) -> None:
    before = sent(dialog)

    set_priority(dialog=dialog, message_id=lost.pk, priority="2")

    assert sent(dialog) == before


def test_a_shortened_message_is_whole_again(dialog: Dialog, run: CompactionRun, lost: Message) -> None:
    run.view = [*run.view[:-1], {"message": lost.pk, "content": "Answer, shorter."}, run.view[-1]]
    run.save()
    assert "Answer, shorter." in sent(dialog)

    pinned(dialog, lost)

    assert lost.content in sent(dialog)
    assert "Answer, shorter." not in sent(dialog)


def test_a_result_stands_with_its_call(alice: User, dialog: Dialog, history: list[Message]) -> None:
    row = Dialog.objects.get(pk=dialog.pk)
    calling = add_message(row, role=Role.ASSISTANT, origin=MessageOrigin.AGENT, content="", parent=row.current_leaf)
    call = a_call(calling, call_id="c1", status="done")
    call.result_message = result = add_message(
        row, role=Role.TOOL, origin=MessageOrigin.TOOL, content="Found", parent=calling, parts={"tool_call_id": "c1"}
    )
    call.save()
    row.save()
    leaf = a_history(row, pairs=1)[-1]
    run = compacted(dialog, alice)
    run.view = [{"message": history[0].pk}, {"message": leaf.pk}]
    run.save()

    pinned(dialog, result)

    messages = chat_request(next_context(dialog_to_drive(dialog.pk))).messages
    assert [(one.role, one.tool_call_id) for one in messages if one.tool_calls or one.tool_call_id] == [
        ("assistant", None),
        ("tool", "c1"),
    ]


@pytest.mark.parametrize("mark", [pinned, tagged])
def test_it_is_sent_where_the_clock_has_gone_back_since(
    dialog: Dialog, run: CompactionRun, lost: Message, mark: Mark
) -> None:
    """By the clock it was marked before the view was made, which had therefore decided upon it."""
    CompactionRun.objects.update(queued_at=run.queued_at + timedelta(hours=1))

    mark(dialog, lost)

    assert lost.content in sent(dialog)


def test_what_is_marked_on_another_branch_is_not_sent(dialog: Dialog, run: CompactionRun, play: Play) -> None:
    asked = ask(dialog, "What about the roof?")
    play(said(120, "Red."))
    drive_until_idle(dialog)
    edit_message(dialog=dialog, message=asked, content="What about the door?")
    play(said(120, "Green."))
    drive_until_idle(dialog)

    pinned(dialog, asked)

    assert "What about the roof?" not in sent(dialog)
    assert "What about the door?" in sent(dialog)


def test_the_next_compaction_keeps_it_and_to_undo_that_too(alice: User, dialog: Dialog, lost: Message) -> None:
    pinned(dialog, lost)
    before = sent(dialog)
    a_history(Dialog.objects.get(pk=dialog.pk), pairs=6)
    grown = sent(dialog)

    later = compacted(dialog, alice)
    kept = sent(dialog)
    undo(dialog=dialog, run_id=later.pk, by=alice)

    assert lost.content in kept
    assert sent(dialog) == grown
    assert grown[: len(before)] == before


def test_what_was_marked_while_an_undo_held_is_in_the_view_that_comes_again(
    alice: User, dialog: Dialog, run: CompactionRun, lost: Message
) -> None:
    undo(dialog=dialog, run_id=run.pk, by=alice)
    pinned(dialog, lost)

    redo(dialog=dialog, run_id=run.pk, by=alice)

    assert lost.content in sent(dialog)


def test_what_is_marked_while_it_is_compacted_is_not_left_out(
    alice: User, dialog: Dialog, lost: Message, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_history(Dialog.objects.get(pk=dialog.pk), pairs=6)

    def read(*given: Any) -> Material:
        found = material(*given)
        pinned(dialog, lost)
        return found

    monkeypatch.setattr(work, "material", read)
    run = compacted(dialog, alice)

    assert lost.content not in str(run.view)
    assert lost.pk not in [entry.get("message") for entry in run.view]
    assert lost.content in sent(dialog)


def test_the_record_of_a_request_has_it_after_it_was_let_go(dialog: Dialog, lost: Message, play: Play) -> None:
    pinned(dialog, lost)
    play(said(120, "Yes."))
    ask_and_drive(dialog, "Do you see it?")
    answered = Generation.objects.latest("pk")

    set_pin(dialog=dialog, message_id=lost.pk, pinned=False)

    seen = seen_by_generation(Dialog.objects.get(pk=dialog.pk), answered.pk)
    assert seen is not None
    assert lost.content in [part.text for part in seen.parts]
