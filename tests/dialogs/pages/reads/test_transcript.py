"""The transcript as rows: which there are, in which order, and when a row counts as changed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from dialogs.models import Dialog, Message, ToolCall
from dialogs.pages.reads.rows import AttemptRow, LiveRow, MessageRow, QueuedRow
from dialogs.pages.reads.transcript import transcript
from dialogs.turns.writes.messages import post_message, request_stop, retry
from dialogs.turns.writes.tool_calls import add_results
from tests.builders import a_call, a_course, a_generation, an_answer
from tests.dialogs.driver.conftest import ask, drive_until_idle


def kinds(dialog: Dialog) -> list[str]:
    dialog.refresh_from_db()
    return [row.kind for row in transcript(dialog).rows]


def test_only_the_last_typed_message_can_be_edited(dialog: Dialog) -> None:
    ask(dialog, "One")
    an_answer(dialog)
    ask(dialog, "Two")
    an_answer(dialog)

    flags = [(row.is_last_user, row.is_last_answer) for row in transcript(dialog).rows if isinstance(row, MessageRow)]

    assert flags == [(False, False), (False, False), (True, False), (False, True)]


def test_a_failure_is_no_row_until_the_try_that_was_to_come_was_stopped(dialog: Dialog) -> None:
    ask(dialog)
    a_generation(dialog, status="failed", retry_at=timezone.now() + timedelta(seconds=5))
    assert kinds(dialog) == ["message"]

    dialog.answer_due, dialog.handled_seq = False, dialog.wake_seq
    dialog.save()
    assert kinds(dialog) == ["message", "attempt"]


@pytest.mark.django_db(transaction=True)
def test_what_was_stopped_before_a_provider_was_asked_has_no_answer_yet(dialog: Dialog) -> None:
    ask(dialog)
    assert kinds(dialog) == ["message"]

    request_stop(dialog=dialog)
    drive_until_idle(dialog)
    assert kinds(dialog) == ["message", "unanswered"]

    retry(dialog=dialog)
    assert kinds(dialog) == ["message"]


def test_a_line_that_broke_in_an_answer_is_called_so(dialog: Dialog) -> None:
    ask(dialog)
    a_generation(dialog, status="failed", error_code="provider_unreachable", partial_text="Half a")
    dialog.refresh_from_db()

    row = transcript(dialog).rows[-1]

    assert isinstance(row, AttemptRow)
    assert "broke in the middle" in str(row.headline)


def test_a_try_without_text_disappears_once_another_succeeded(dialog: Dialog) -> None:
    ask(dialog)
    a_generation(dialog, status="interrupted")
    an_answer(dialog)

    assert kinds(dialog) == ["message", "message"]


def test_a_failed_retry_stands_between_question_and_earlier_answer(dialog: Dialog) -> None:
    ask(dialog)
    an_answer(dialog)
    question = dialog.messages.first()
    a_generation(dialog, status="failed", prompt_leaf=question, error_code="provider_failed")

    assert kinds(dialog) == ["message", "attempt", "message"]


def test_a_row_changes_when_a_sibling_appears(dialog: Dialog) -> None:
    ask(dialog)
    an_answer(dialog, "One")
    key = transcript(dialog).rows[1].key
    retry(dialog=dialog)
    an_answer(dialog, "Two")

    assert transcript(dialog).rows[1].key != key


def test_every_row_has_an_id_of_its_own(dialog: Dialog) -> None:
    ask(dialog)
    a_generation(dialog, status="interrupted", partial_text="Once")
    a_generation(dialog)
    post_message(dialog=dialog, content="Second")

    rows = transcript(dialog).rows

    assert {type(row) for row in rows} == {MessageRow, AttemptRow, LiveRow, QueuedRow}
    assert len({row.dom_id for row in rows}) == len(rows)


# --- Courses -----------------------------------------------------------------------------------


def messages(dialog: Dialog) -> list[MessageRow]:
    dialog.refresh_from_db()
    return [row for row in transcript(dialog).rows if isinstance(row, MessageRow)]


def test_the_rows_that_are_shown_are_counted_in_the_current_course_only(dialog: Dialog) -> None:
    for _ in range(3):
        ask(dialog)
        an_answer(dialog)
    a_course(dialog)
    an_answer(dialog)

    shown = transcript(dialog, limit=1)

    assert (len(shown.rows), shown.hidden, len(shown.earlier)) == (1, 1, 1)


def test_an_answer_that_stands_beside_a_new_course_is_a_version_of_its_opening(dialog: Dialog) -> None:
    question = ask(dialog)
    a_course(dialog, opened_by="recovery")
    opening = messages(dialog)[0].message
    dialog.current_leaf = question
    dialog.save()
    answer = an_answer(dialog, "It fitted after all.")

    assert messages(dialog)[-1].versions == (opening.pk, answer.pk)


# --- Tool calls --------------------------------------------------------------------------------


def calling(dialog: Dialog, content: str = "", **call: object) -> ToolCall:
    ask(dialog)
    return a_call(an_answer(dialog, content), **call)


def closed(dialog: Dialog) -> None:
    add_results(dialog)
    dialog.save()


def test_a_result_stands_in_its_call_and_neither_is_nor_counts_as_a_row(dialog: Dialog) -> None:
    calling(dialog, status="done", result="Twelve letters")
    closed(dialog)

    rows = messages(dialog)
    assert [row.message.role for row in rows] == ["user", "assistant"]
    assert [call.result for call in rows[1].calls] == ["Twelve letters"]

    an_answer(dialog, "Twelve.")
    shown = transcript(dialog, limit=2)
    assert [row.kind for row in shown.rows] == ["message", "message"]
    assert shown.hidden == 1


@pytest.mark.parametrize("status", ["running", "waiting", "done", "failed", "interrupted", "withdrawn"])
def test_a_row_changes_with_the_state_of_its_calls(dialog: Dialog, status: str) -> None:
    call = calling(dialog)
    key = messages(dialog)[-1].key

    ToolCall.objects.filter(pk=call.pk).update(status=status)

    assert messages(dialog)[-1].key != key


def test_the_answer_that_follows_a_result_is_live_behind_its_call(dialog: Dialog) -> None:
    calling(dialog, status="done")
    closed(dialog)
    a_generation(dialog)

    assert kinds(dialog) == ["message", "message", "live"]


def test_a_failure_after_a_result_can_be_retried(dialog: Dialog) -> None:
    calling(dialog, status="done")
    closed(dialog)
    a_generation(dialog, status="failed", error_code="provider_failed")

    row = transcript(dialog).rows[-1]

    assert isinstance(row, AttemptRow)
    assert row.can_retry


def test_the_last_answer_can_be_asked_for_again_though_its_results_follow_it(dialog: Dialog) -> None:
    calling(dialog, status="withdrawn")
    closed(dialog)

    assert [row.is_last_answer for row in messages(dialog)] == [False, True]


# --- What Dominds itself says ------------------------------------------------------------------


def prompted(dialog: Dialog, **fields: object) -> Message:
    ask(dialog)
    an_answer(dialog)
    message = dialog.messages.create(
        course=dialog.courses.get(),
        seq=99,
        turn=2,
        parent=dialog.current_leaf,
        role="user",
        origin="remediation",
        content="Write down what matters.",
    )
    dialog.remediation_prompts.create(message=message, course=message.course, level="caution", **fields)
    dialog.current_leaf = message
    dialog.save()
    return message


def test_an_inserted_message_is_no_message_of_the_person_and_changes_when_the_agent_complies(dialog: Dialog) -> None:
    prompted(dialog)

    rows = messages(dialog)
    assert [(row.is_inserted, row.is_last_user) for row in rows] == [(False, True), (False, False), (True, False)]
    assert rows[-1].prompt is not None

    dialog.remediation_prompts.update(curated=True)
    assert messages(dialog)[-1].key != rows[-1].key


def test_a_failure_after_an_inserted_message_can_be_retried(dialog: Dialog) -> None:
    prompted(dialog)
    a_generation(dialog, status="failed", error_code="provider_failed")
    dialog.handled_seq = dialog.wake_seq

    row = transcript(dialog).rows[-1]

    assert isinstance(row, AttemptRow)
    assert row.can_retry


@pytest.mark.parametrize(("content", "folded"), [("Go on.", False), ("word " * 60, True), ("one\n" * 5, True)])
def test_what_is_long_is_folded(dialog: Dialog, content: str, folded: bool) -> None:
    message = prompted(dialog)
    message.content = content
    message.save()

    assert messages(dialog)[-1].is_folded is folded
    assert not any(row.is_folded for row in messages(dialog)[:-1])


@pytest.mark.parametrize(("content", "folded"), [("word " * 60, False), ("word " * 600, True), ("one\n" * 60, True)])
def test_what_a_person_wrote_is_folded_when_it_fills_the_screen_and_an_answer_never(
    dialog: Dialog, content: str, folded: bool
) -> None:
    ask(dialog, content)
    post_message(dialog=dialog, content=content)
    an_answer(dialog, content)

    said, answer, waiting = transcript(dialog).rows

    assert isinstance(said, MessageRow)
    assert isinstance(answer, MessageRow)
    assert isinstance(waiting, QueuedRow)
    assert (said.is_folded, answer.is_folded, waiting.is_folded) == (folded, False, folded)
