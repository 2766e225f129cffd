"""What happens next in a dialog: the rules of `decide`, in their order, and the wait between tries."""

from __future__ import annotations

import pytest

from dialogs.driver.decide import Action, Generate, GiveUp, Halt, Rest, TakeQueued, Wait, decide, retry_delay
from dialogs.driver.state import Failure, Policy, State

POLICY = Policy(attempts=3, base_seconds=2, max_seconds=60, interruptions=3)


@pytest.mark.parametrize(
    ("state", "action"),
    [
        (State(answer_due=False), Rest()),
        (State(answer_due=False, stop_requested=True), Rest()),
        (State(answer_due=True), Generate(attempt=1)),
        (State(answer_due=False, queued=2), TakeQueued()),
        (State(answer_due=True, queued=2), Generate(attempt=1)),  # one turn at a time
        (State(answer_due=True, stop_requested=True), Halt()),
        (State(answer_due=True, stop_requested=True, retry_in=5), Halt()),  # stop beats waiting
        (State(answer_due=True, trashed=True), Halt()),
        (State(answer_due=False, trashed=True, queued=1), Rest()),  # waits in the trash too
        (State(answer_due=True, failures=1, retry_in=4.5), Wait(4.5)),
        (State(answer_due=True, failures=1, retry_in=0), Generate(attempt=2)),
        (State(answer_due=True, interruptions=2), Generate(attempt=3)),
        (State(answer_due=True, interruptions=3), GiveUp()),  # it kills every worker that tries
        (State(answer_due=True, interruptions=3, stop_requested=True), Halt()),
    ],
)
def test_the_first_rule_that_fits_wins(state: State, action: Action) -> None:
    assert decide(state, POLICY) == action


@pytest.mark.parametrize(("failures", "seconds"), [(1, 2), (2, 4)])
def test_the_wait_doubles_with_every_failure(failures: int, seconds: float) -> None:
    assert retry_delay(Failure(retryable=True), failures=failures, policy=POLICY, jitter=0) == seconds


def test_the_wait_has_a_longest() -> None:
    patient = Policy(attempts=20, base_seconds=2, max_seconds=60)

    assert retry_delay(Failure(retryable=True), failures=12, policy=patient, jitter=0) == 60


def test_jitter_adds_up_to_a_quarter() -> None:
    assert retry_delay(Failure(retryable=True), failures=1, policy=POLICY, jitter=1) == 2.5


def test_the_last_attempt_is_not_followed_by_another() -> None:
    assert retry_delay(Failure(retryable=True), failures=3, policy=POLICY, jitter=0) is None


def test_a_refusal_is_not_tried_again() -> None:
    assert retry_delay(Failure(retryable=False), failures=1, policy=POLICY, jitter=0) is None


def test_retry_after_is_never_undercut() -> None:
    assert retry_delay(Failure(retryable=True, retry_after=30), failures=1, policy=POLICY, jitter=0) == 30


def test_a_retry_after_beyond_the_longest_wait_ends_the_tries() -> None:
    assert retry_delay(Failure(retryable=True, retry_after=3600), failures=1, policy=POLICY, jitter=0) is None
