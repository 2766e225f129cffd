"""The lease: who may drive a dialog, and what happens to what a dead worker left behind."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from dialogs.driver.writes import turns
from dialogs.models import Dialog, Generation, QueuedMessage
from dialogs.turns.reads.turns import dialog_to_drive, driven, due_dialogs, state_of, turn_status
from dialogs.turns.writes import lease
from dialogs.turns.writes.lease import Claim, LeaseLost
from dialogs.turns.writes.messages import post_message, retry
from tests.builders import a_generation, an_answer


@pytest.fixture
def due(dialog: Dialog) -> Dialog:
    """Alice's dialog with a question that wants an answer."""
    post_message(dialog=dialog, content="Hello")
    dialog.refresh_from_db()
    return dialog


def claimed(dialog: Dialog) -> Claim:
    claim = lease.claim(dialog.pk)
    assert claim is not None
    return claim


def left_by_a_dead_worker(dialog: Dialog) -> None:
    Dialog.objects.update(lease_until=timezone.now() - timedelta(seconds=1))


def test_a_due_dialog_can_be_claimed_once_until_its_lease_runs_out(due: Dialog) -> None:
    first = claimed(due)
    assert lease.claim(due.pk) is None

    left_by_a_dead_worker(due)
    lease.renew(first)
    assert lease.claim(due.pk) is None

    left_by_a_dead_worker(due)
    assert claimed(due).token > first.token


def test_an_idle_dialog_cannot_be_claimed(dialog: Dialog) -> None:
    assert lease.claim(dialog.pk) is None


def test_a_worker_that_was_given_up_for_dead_can_write_nothing(due: Dialog) -> None:
    late = claimed(due)
    left_by_a_dead_worker(due)
    claimed(due)

    for write in (lease.renew, lease.fenced, turns.halt, turns.take_queued):
        with pytest.raises(LeaseLost):
            write(late)
    assert not lease.release(late)


@pytest.mark.parametrize("halted", [False, True])
def test_a_release_fails_when_something_new_came_up_and_keeps_the_work_due(due: Dialog, halted: bool) -> None:
    claim = claimed(due)
    post_message(dialog=due, content="And another thing")
    if halted:
        turns.halt(claim)

    assert not lease.release(claim)

    due.refresh_from_db()
    assert due.is_busy
    lease.give_back(claim)
    assert lease.claim(due.pk) is not None


@pytest.mark.parametrize("halted", [False, True])
def test_releasing_makes_the_dialog_idle_and_a_halted_turn_wants_no_answer(due: Dialog, halted: bool) -> None:
    claim = claimed(due)
    if halted:
        turns.halt(claim)

    assert lease.release(claim)

    due.refresh_from_db()
    assert not due.is_busy
    assert not halted or (due.answer_due, due.stop_requested) == (False, False)


def test_a_waiting_message_gets_its_own_turn(due: Dialog) -> None:
    post_message(dialog=due, content="Second")
    claim = claimed(due)
    turns.halt(claim)

    turns.take_queued(claim)

    due.refresh_from_db()
    assert due.current_leaf is not None
    assert (due.current_leaf.content, due.current_leaf.turn, due.answer_due) == ("Second", 2, True)
    assert not QueuedMessage.objects.exists()


def test_tries_are_counted_since_the_answer_became_due(due: Dialog) -> None:
    a_generation(due, status="failed")  # given up: belongs to an earlier wish
    a_generation(due, status="failed", retry_at=timezone.now())
    a_generation(due, status="interrupted")
    a_generation(due, status="failed", retry_at=timezone.now() + timedelta(seconds=60))

    state = state_of(dialog_to_drive(due.pk))

    assert (state.failures, state.interruptions) == (2, 1)
    assert state.retry_in == pytest.approx(60, abs=2)


def test_a_retry_by_a_person_starts_counting_anew(due: Dialog) -> None:
    a_generation(due, status="failed", retry_at=timezone.now())
    a_generation(due, status="failed")
    claim = claimed(due)
    turns.halt(claim)
    lease.release(claim)

    retry(dialog=due)

    assert state_of(dialog_to_drive(due.pk)).failures == 0


def test_when_a_retry_brings_nothing_the_earlier_answer_shows_again(due: Dialog) -> None:
    answer = an_answer(due)
    retry(dialog=due)
    claim = claimed(due)

    turns.halt(claim)

    due.refresh_from_db()
    assert due.current_leaf == answer


@pytest.mark.django_db
def test_an_erased_dialog_has_no_work() -> None:
    assert driven(uuid4()) is None


def test_a_next_try_of_before_the_clock_went_back_is_waited_for_no_longer(due: Dialog) -> None:
    fail_once(due)
    assert due_dialogs() == []

    ended = timezone.now() + timedelta(hours=1)
    Generation.objects.update(finished_at=ended, retry_at=ended + timedelta(seconds=9))

    assert due_dialogs() == [due.pk]
    assert state_of(dialog_to_drive(due.pk)).retry_in == 0


def fail_once(due: Dialog) -> None:
    """With its next try in nine seconds, and nobody at work."""
    ended = timezone.now()
    row = a_generation(due, status="failed")
    Generation.objects.filter(pk=row.pk).update(finished_at=ended, retry_at=ended + timedelta(seconds=9))


def test_the_sweeper_and_a_person_see_what_nobody_drives(due: Dialog) -> None:
    assert due_dialogs() == [due.pk]
    assert turn_status(due).waiting_since is not None

    claimed(due)
    due.refresh_from_db()
    assert due_dialogs() == []
    assert turn_status(due).waiting_since is None

    left_by_a_dead_worker(due)
    assert due_dialogs() == [due.pk]


def test_after_a_prompt_was_refused_as_too_long_no_try_is_announced(due: Dialog) -> None:
    """The dialog is compacted first: "shorten the message, trying again in 0 s" would mislead."""
    a_generation(due, status="failed", error_code="context_overflow", retry_at=timezone.now())

    status = turn_status(due)

    assert (status.retry_at, status.error) == (None, "")
