"""The transcript as rows: which there are, in which order, and when a row counts as changed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from dialogs.models import Dialog, Message
from dialogs.selectors.rows import AttemptRow, LiveRow, MessageRow, QueuedRow
from dialogs.selectors.transcript import transcript
from dialogs.services.messages import choose_branch, edit_message, post_message, retry
from tests.builders import a_generation, an_answer


def ask(dialog: Dialog, content: str = "Hello") -> Message:
    message = post_message(dialog=dialog, content=content)
    dialog.refresh_from_db()
    assert isinstance(message, Message)
    return message


def kinds(dialog: Dialog) -> list[str]:
    dialog.refresh_from_db()
    return [row.kind for row in transcript(dialog).rows]


def test_an_empty_dialog_has_no_rows(dialog: Dialog) -> None:
    assert transcript(dialog).rows == ()


def test_messages_stand_in_the_order_of_the_branch(dialog: Dialog) -> None:
    ask(dialog, "One")
    an_answer(dialog, "Two")
    ask(dialog, "Three")

    rows = transcript(dialog).rows

    assert [row.message.content for row in rows if isinstance(row, MessageRow)] == ["One", "Two", "Three"]


def test_only_the_last_typed_message_can_be_edited(dialog: Dialog) -> None:
    ask(dialog, "One")
    an_answer(dialog)
    ask(dialog, "Two")
    an_answer(dialog)

    flags = [(row.is_last_user, row.is_last_answer) for row in transcript(dialog).rows if isinstance(row, MessageRow)]

    assert flags == [(False, False), (False, False), (True, False), (False, True)]


def test_versions_of_a_message_know_one_another(dialog: Dialog) -> None:
    old = ask(dialog, "Cats")
    an_answer(dialog)
    new = edit_message(dialog=dialog, message=old, content="Dogs")
    dialog.refresh_from_db()

    row = transcript(dialog).rows[0]

    assert isinstance(row, MessageRow)
    assert (row.message, row.position, row.siblings, row.previous_id, row.next_id) == (new, 2, 2, old.pk, None)


def test_choosing_an_older_version_shows_its_branch(dialog: Dialog) -> None:
    old = ask(dialog, "Cats")
    an_answer(dialog, "Purr.")
    edit_message(dialog=dialog, message=old, content="Dogs")
    an_answer(dialog, "Bark.")

    choose_branch(dialog=dialog, message=old)
    dialog.refresh_from_db()

    contents = [row.message.content for row in transcript(dialog).rows if isinstance(row, MessageRow)]
    assert contents == ["Cats", "Purr."]


def test_the_running_generation_is_a_live_row(dialog: Dialog) -> None:
    ask(dialog)
    a_generation(dialog)

    assert kinds(dialog) == ["message", "live"]


def test_waiting_messages_stand_at_the_end(dialog: Dialog) -> None:
    ask(dialog)
    post_message(dialog=dialog, content="Second")

    assert kinds(dialog) == ["message", "queued"]


def test_a_failure_that_ended_the_tries_can_be_retried(dialog: Dialog) -> None:
    ask(dialog)
    a_generation(dialog, status="failed", error_code="provider_failed")
    dialog.handled_seq = dialog.wake_seq

    row = transcript(dialog).rows[-1]

    assert isinstance(row, AttemptRow)
    assert row.can_retry
    assert "error of its own" in str(row.headline)


def test_a_failure_with_another_try_to_come_is_no_row(dialog: Dialog) -> None:
    ask(dialog)
    a_generation(dialog, status="failed", retry_at=timezone.now() + timedelta(seconds=5))

    assert kinds(dialog) == ["message"]


def test_a_failure_is_shown_when_the_next_try_was_stopped(dialog: Dialog) -> None:
    ask(dialog)
    a_generation(dialog, status="failed", retry_at=timezone.now() + timedelta(seconds=5))
    dialog.answer_due, dialog.handled_seq = False, dialog.wake_seq
    dialog.save()

    assert kinds(dialog) == ["message", "attempt"]


def test_a_line_that_broke_in_an_answer_is_called_so(dialog: Dialog) -> None:
    ask(dialog)
    a_generation(dialog, status="failed", error_code="provider_unreachable", partial_text="Half a")
    dialog.refresh_from_db()

    row = transcript(dialog).rows[-1]

    assert isinstance(row, AttemptRow)
    assert "broke in the middle" in str(row.headline)


def test_interrupted_text_stays_before_the_answer_that_replaced_it(dialog: Dialog) -> None:
    ask(dialog)
    a_generation(dialog, status="interrupted", partial_text="Once upon")
    an_answer(dialog, "Once upon a time.")

    assert kinds(dialog) == ["message", "attempt", "message"]


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


def test_earlier_messages_of_a_long_dialog_are_left_out_and_counted(dialog: Dialog) -> None:
    for number in range(3):
        ask(dialog, f"Question {number}")
        an_answer(dialog)

    shown = transcript(dialog, limit=2)

    assert (len(shown.rows), shown.hidden) == (2, 4)


def test_a_row_changes_when_a_sibling_appears(dialog: Dialog) -> None:
    ask(dialog)
    an_answer(dialog, "One")
    key = transcript(dialog).rows[1].key
    retry(dialog=dialog)
    an_answer(dialog, "Two")

    assert transcript(dialog).rows[1].key != key


@pytest.mark.parametrize("limit", [None, 100])
def test_a_transcript_costs_a_fixed_number_of_queries(
    dialog: Dialog, limit: int | None, django_assert_max_num_queries: object
) -> None:
    for _ in range(5):
        ask(dialog)
        an_answer(dialog)

    with django_assert_max_num_queries(10):  # type: ignore[operator]
        rows = transcript(dialog, limit=limit).rows

    assert len(rows) == 10


def test_every_row_has_an_id_of_its_own(dialog: Dialog) -> None:
    ask(dialog)
    a_generation(dialog, status="interrupted", partial_text="Once")
    a_generation(dialog)
    post_message(dialog=dialog, content="Second")

    rows = transcript(dialog).rows

    assert {type(row) for row in rows} == {MessageRow, AttemptRow, LiveRow, QueuedRow}
    assert len({row.dom_id for row in rows}) == len(rows)
