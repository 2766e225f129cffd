"""Rows that tell of compactions: where they stand, which they are, what can be done; and what became of messages."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from dialogs.compaction.reads.compaction_card import compaction_card
from dialogs.compaction.reads.compaction_rows import TITLES, CompactionRow
from dialogs.compaction.work import perform
from dialogs.compaction.writes.manual_compaction import request
from dialogs.compaction.writes.view_changes import undo
from dialogs.models import Dialog, Message
from dialogs.models.message import MessageOrigin, Role
from dialogs.pages.reads.rows import LiveRow, MessageRow
from dialogs.pages.reads.transcript import course_page, transcript
from dialogs.transcript.reads.courses import current_course
from dialogs.transcript.writes.dialog_row import add_message
from dialogs.transcript.writes.marks import set_pin, set_priority
from dialogs.turns.writes.messages import edit_message, post_message
from health.models import CompactionRun
from tests.builders import a_call, a_course, a_generation, an_answer
from tests.dialogs.compacting_builders import a_history, guard
from tests.dialogs.compaction_runs import a_run, an_applied_run


def kinds(dialog: Dialog) -> list[str]:
    dialog.refresh_from_db()
    return [row.kind for row in transcript(dialog).rows]


def dividers(dialog: Dialog) -> list[CompactionRow]:
    dialog.refresh_from_db()
    return [row for row in transcript(dialog).rows if isinstance(row, CompactionRow)]


def messages(dialog: Dialog) -> list[MessageRow]:
    dialog.refresh_from_db()
    return [row for row in transcript(dialog).rows if isinstance(row, MessageRow)]


def compacted(dialog: Dialog, by: User) -> CompactionRun:
    run = request(dialog=dialog, by=by)
    perform(run.pk, embedder="static")
    run.refresh_from_db()
    assert run.status == "applied"
    return run


# --- Where they stand ---------------------------------------------------------------------------


def test_a_run_stands_after_the_message_at_which_it_began(dialog: Dialog) -> None:
    post_message(dialog=dialog, content="One")
    an_answer(dialog)
    an_applied_run(dialog)
    assert kinds(dialog) == ["message", "message", "compaction"]

    post_message(dialog=dialog, content="Two")

    assert kinds(dialog) == ["message", "message", "compaction", "message"]


def test_an_answer_that_is_being_made_stands_after_the_compaction_before_it(dialog: Dialog) -> None:
    post_message(dialog=dialog, content="One")
    dialog.refresh_from_db()
    a_generation(dialog, status="failed", error_code="context_overflow", partial_text="Half")
    an_applied_run(dialog)
    a_generation(dialog)

    assert kinds(dialog) == ["message", "attempt", "compaction", "live"]


def test_a_run_of_another_branch_is_not_shown(dialog: Dialog) -> None:
    post_message(dialog=dialog, content="One")
    an_answer(dialog, "Old")
    an_applied_run(dialog)
    dialog.refresh_from_db()
    dialog.current_leaf = dialog.messages.first()
    dialog.save()
    an_answer(dialog, "New")

    assert kinds(dialog) == ["message", "message"]


def test_an_earlier_course_shows_its_runs_to_be_read_only(dialog: Dialog) -> None:
    post_message(dialog=dialog, content="One")
    answer = an_answer(dialog)
    an_applied_run(dialog)
    course = current_course(dialog)
    assert course is not None
    a_course(dialog)

    rows, _more = course_page(dialog, course_id=course.pk, last_id=answer.pk, page=1)

    row = rows[-1]
    assert isinstance(row, CompactionRow)
    assert (row.is_current, row.can_undo, row.state) == (False, False, "applied")
    assert dividers(dialog) == []


def test_runs_cost_a_fixed_number_of_queries(dialog: Dialog, django_assert_max_num_queries: object) -> None:
    for number in range(6):
        post_message(dialog=dialog, content=f"Question {number}")
        an_answer(dialog)
        an_applied_run(dialog)
        dialog.refresh_from_db()

    with django_assert_max_num_queries(13):  # type: ignore[operator]
        rows = transcript(dialog).rows

    assert len(rows) == 18


# --- Which they are -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "state", "is_thin"),
    [
        ({"status": "queued", "trigger": "manual"}, "running", False),
        ({"status": "running", "trigger": "pre_request"}, "guarding", False),
        ({"status": "applied", "trigger": "tool_result"}, "applied", False),
        # The plan's words, between two pieces of one answer.
        ({"status": "applied", "trigger": "stream"}, "continued", True),
        ({"status": "applied", "recovered": "fresh_start"}, "recovered", False),
        ({"status": "applied", "recovered": "truncate"}, "truncated", False),
        ({"status": "applied", "trigger": "reset"}, "reset", False),
        ({"status": "draft", "trigger": "manual"}, "draft", False),
        ({"status": "skipped", "trigger": "manual"}, "skipped", False),
        # Nobody asked for it, and nothing came of it.
        ({"status": "skipped", "trigger": "pre_request"}, "skipped", True),
        ({"status": "failed"}, "failed", False),
        ({"status": "cancelled"}, "cancelled", False),
        ({"status": "undone", "trigger": "stream"}, "undone", False),
    ],
)
def test_each_end_has_a_row_of_its_own(dialog: Dialog, fields: dict[str, str], state: str, *, is_thin: bool) -> None:
    a_run(dialog, **fields)

    row = dividers(dialog)[0]

    assert (row.state, row.is_thin) == (state, is_thin)
    assert row.title == TITLES[state]


def test_the_seeds_words_are_kept_to_the_letter() -> None:
    assert str(TITLES["guarding"]) == "Compacting conversation history..."
    assert str(TITLES["continued"]) == "Context compacted, continuing..."


def test_a_row_changes_with_the_runs_progress(dialog: Dialog) -> None:
    run = a_run(dialog)
    begun = dividers(dialog)[0].key

    CompactionRun.objects.filter(pk=run.pk).update(tokens_now=3000)
    further = dividers(dialog)[0].key
    CompactionRun.objects.filter(pk=run.pk).update(status="applied")
    done = dividers(dialog)[0].key

    assert len({begun, further, done}) == 3


def test_only_the_view_that_holds_can_be_undone(dialog: Dialog) -> None:
    first = an_applied_run(dialog)
    an_applied_run(dialog, parent_run=first)

    assert [(row.can_undo, row.can_redo) for row in dividers(dialog)] == [(False, False), (True, False)]


def test_the_view_that_holds_after_an_edit_can_be_undone_though_a_later_one_is_elsewhere(dialog: Dialog) -> None:
    post_message(dialog=dialog, content="Hello")
    an_answer(dialog)
    dialog.refresh_from_db()
    first = an_applied_run(dialog)
    asked = post_message(dialog=dialog, content="What then?")
    assert isinstance(asked, Message)
    an_answer(dialog)
    an_applied_run(dialog, parent_run=first, leaf=asked, through_seq=asked.seq)
    dialog.refresh_from_db()

    edit_message(dialog=dialog, message=asked, content="What now?")

    assert [row.can_undo for row in dividers(dialog)] == [True]
    card = compaction_card(dialog)
    assert card is not None
    assert not card.may_undo


def test_what_was_undone_can_be_redone_while_its_place_is_free(dialog: Dialog) -> None:
    a_run(dialog, status="undone")
    assert [row.can_redo for row in dividers(dialog)] == [True]

    an_applied_run(dialog)

    assert [row.can_redo for row in dividers(dialog)] == [False, False]


AGAIN = "Your next message will compact it again."


def test_an_undone_run_of_the_guards_says_that_the_next_message_brings_it_again(alice: User, dialog: Dialog) -> None:
    guard(dialog)
    run = an_applied_run(dialog)
    an_answer(dialog)
    undo(dialog=dialog, run_id=run.pk, by=alice)
    (undone,) = dividers(dialog)
    assert AGAIN in str(undone.advice)

    post_message(dialog=dialog, content="Go on")

    (later,) = dividers(dialog)
    assert AGAIN not in str(later.advice)
    assert later.key != undone.key


@pytest.mark.parametrize(("trigger", "is_guarded"), [("manual", True), ("pre_request", False)])
def test_an_undone_run_that_nobody_brings_again_says_no_such_thing(
    alice: User, dialog: Dialog, trigger: str, is_guarded: bool
) -> None:
    if is_guarded:
        guard(dialog)
    run = an_applied_run(dialog, trigger=trigger)
    an_answer(dialog)

    undo(dialog=dialog, run_id=run.pk, by=alice)

    (undone,) = dividers(dialog)
    assert undone.can_redo
    assert AGAIN not in str(undone.advice)


# --- What became of messages --------------------------------------------------------------------


def test_what_the_view_leaves_out_is_archived_until_it_is_undone(alice: User, dialog: Dialog) -> None:
    a_history(dialog, pairs=12)
    run = compacted(dialog, alice)
    dialog.refresh_from_db()
    post_message(dialog=dialog, content="And now?")

    archived = {row.message.pk for row in messages(dialog) if row.is_archived}
    assert archived == set(run.removed)
    assert archived

    Dialog.objects.update(answer_due=False, handled_seq=10**6)
    dialog.refresh_from_db()
    undo(dialog=dialog, run_id=run.pk, by=alice)

    assert not any(row.is_archived for row in messages(dialog))


def test_a_shorter_text_in_the_view_is_said(dialog: Dialog) -> None:
    post_message(dialog=dialog, content="A long story")
    answer = an_answer(dialog)
    result = add_message(
        dialog, role=Role.TOOL, origin=MessageOrigin.TOOL, content="x" * 500, parent=answer, parts={"tool_call_id": "1"}
    )
    dialog.save()
    a_call(answer, result_message=result, status="done")
    first = dialog.messages.order_by("seq")[0]
    view = [
        {"message": first.pk, "content": "A story"},
        {"message": answer.pk},
        {"message": result.pk, "content": "x"},
    ]
    an_applied_run(dialog, view=view)

    assert [(row.is_shortened, row.is_archived) for row in messages(dialog)] == [(True, False), (True, False)]


# --- An answer that was cut ---------------------------------------------------------------------


def a_cut_answer(dialog: Dialog) -> Message:
    """A question, half an answer, and what asks the model to go on; an answer is due."""
    post_message(dialog=dialog, content="Tell me")
    half = an_answer(dialog, "Once upon", finish_reason="compaction")
    Message.objects.filter(pk=half.pk).update(cut_short=True)
    going_on = add_message(
        dialog, role=Role.USER, origin=MessageOrigin.CONTINUATION, content="Go on.", parent=dialog.current_leaf
    )
    dialog.answer_due = True
    dialog.save()
    return going_on


def test_the_live_answer_goes_on_with_the_cut_one(dialog: Dialog) -> None:
    a_cut_answer(dialog)
    a_generation(dialog)

    row = transcript(dialog).rows[-1]

    assert isinstance(row, LiveRow)
    assert row.continues


def test_a_cut_answer_that_nobody_goes_on_with_can_be_tried_again(dialog: Dialog) -> None:
    a_cut_answer(dialog)
    dialog.answer_due = False
    dialog.save()

    half = messages(dialog)[-1]

    assert (half.is_to_be_continued, half.is_last_answer) == (False, True)


# --- Marks --------------------------------------------------------------------------------------


def test_a_mark_changes_its_row(dialog: Dialog) -> None:
    message = a_history(dialog, pairs=1)[0]
    before = messages(dialog)[0].key

    set_priority(dialog=dialog, message_id=message.pk, priority="1", area="Calendar")

    row = messages(dialog)[0]
    assert row.key != before
    assert row.mark is not None
    assert (row.mark.priority, row.mark.area) == (1, "Calendar")


def test_pins_above_a_quarter_of_the_window_are_warned_of_where_the_last_was_set(dialog: Dialog) -> None:
    small, large = a_history(dialog, pairs=2, sentences=16)[1:3]
    set_pin(dialog=dialog, message_id=small.pk, pinned=True)
    assert not any(row.pinned_share for row in messages(dialog)), "few pins"
    dialog.llm.context_length, dialog.llm.optimal_max_tokens = 1200, None
    dialog.llm.save()
    assert [row.message for row in messages(dialog) if row.pinned_share] == [small]

    set_pin(dialog=dialog, message_id=large.pk, pinned=True)

    assert [row.message for row in messages(dialog) if row.pinned_share] == [large]
