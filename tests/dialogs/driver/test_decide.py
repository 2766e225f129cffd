"""What happens next in a dialog: the rules of `decide`, in their order, and the wait between tries."""

from __future__ import annotations

import pytest

from dialogs.driver.decide import (
    Action,
    CarryNotice,
    ClearMind,
    EndPrompts,
    EndRounds,
    EndRun,
    Generate,
    GiveUp,
    Halt,
    InsertPrompt,
    LookForLoop,
    PauseRun,
    Push,
    Rest,
    RunTools,
    TakeQueued,
    Wait,
    decide,
    retry_delay,
)
from dialogs.turns.state import Failure, Leaf, Policy, State
from health.monitor.remediation import Due

POLICY = Policy(attempts=3, base_seconds=2, max_seconds=60, interruptions=3)


@pytest.mark.parametrize(
    ("state", "action"),
    [
        (State(answer_due=False), Rest()),
        (State(answer_due=False, stop_requested=True), Rest()),
        (State(answer_due=True), Generate(attempt=1)),
        (State(answer_due=False, queued=2), TakeQueued()),
        (State(answer_due=True, queued=2), Generate(attempt=1)),  # one turn at a time
        (State(answer_due=True, queued=2, leaf=Leaf.RESULT), TakeQueued()),  # but no more than a round
        (State(answer_due=True, stop_requested=True), Halt()),
        (State(answer_due=True, stop_requested=True, retry_in=5), Halt()),  # stop beats waiting
        (State(answer_due=True, trashed=True), Halt()),
        (State(answer_due=False, trashed=True, queued=1), Rest()),  # waits in the trash too
        (State(answer_due=True, failures=1, retry_in=4.5), Wait(4.5)),
        (State(answer_due=True, failures=1, retry_in=0.5), Wait(0.5)),
        (State(answer_due=True, failures=1, retry_in=0), Generate(attempt=2)),
        (State(answer_due=True, interruptions=2), Generate(attempt=3)),
        (State(answer_due=True, interruptions=3), GiveUp()),  # it kills every worker that tries
        (State(answer_due=True, interruptions=3, stop_requested=True), Halt()),
        # Tools: first the calls, then their results, then the next answer.
        (State(answer_due=True, leaf=Leaf.ANSWER, round_open=True, rounds=1), RunTools()),
        (State(answer_due=True, leaf=Leaf.ANSWER, round_open=True, rounds=25), RunTools(refused=True)),
        (State(answer_due=True, leaf=Leaf.ANSWER, round_open=True, rounds=26), EndRounds()),
        (State(answer_due=True, leaf=Leaf.ANSWER, round_open=True, rounds=26, prompts=1), RunTools()),
        (State(answer_due=True, leaf=Leaf.ANSWER, round_open=True, rounds=27, prompts=1), RunTools(refused=True)),
        (State(answer_due=True, leaf=Leaf.ANSWER, round_open=True, rounds=28, prompts=1), EndRounds()),
        (State(answer_due=True, leaf=Leaf.RESULT, in_vain=3), Generate(attempt=1)),
        (State(answer_due=True, leaf=Leaf.RESULT, in_vain=4), EndRounds()),
        (State(answer_due=True, leaf=Leaf.RESULT, in_vain=4, due=Due.CLEAR), EndRounds()),
        (State(answer_due=True, leaf=Leaf.RESULT, in_vain=4, queued=1), TakeQueued()),
        (State(answer_due=True, leaf=Leaf.RESULT, due=Due.CAUTION, prompts=20), Generate(attempt=1)),
        (State(answer_due=True, leaf=Leaf.RESULT, due=Due.CLEAR, prompts=20), ClearMind()),
        (State(answer_due=False, leaf=Leaf.ANSWER, due=Due.CAUTION, prompts=19), InsertPrompt()),
        (State(answer_due=False, leaf=Leaf.ANSWER, due=Due.CAUTION, prompts=20), EndPrompts()),
        (State(answer_due=False, leaf=Leaf.ANSWER, prompts=20), Rest()),  # none is due
        (State(answer_due=False, leaf=Leaf.ANSWER, due=Due.CLEAR, prompts=20), ClearMind(overflow=False)),
        (State(answer_due=True, leaf=Leaf.ANSWER, round_open=True, stop_requested=True), Halt()),
        (State(answer_due=True, leaf=Leaf.RESULT), Generate(attempt=1)),
        # A person is asked: nothing is done, whatever else is due.
        (State(answer_due=True, leaf=Leaf.ANSWER, round_open=True, waiting_for_person=True, due=Due.CLEAR), Rest()),
        (State(answer_due=True, leaf=Leaf.ANSWER, round_open=True, waiting_for_person=True, queued=1), Rest()),
        (State(answer_due=True, waiting_for_person=True, stop_requested=True), Halt()),
        # Remediation within a turn comes after results, never before a message has had its answer.
        (State(answer_due=True, leaf=Leaf.RESULT, due=Due.CAUTION), InsertPrompt()),
        (State(answer_due=True, leaf=Leaf.RESULT, due=Due.CRITICAL), InsertPrompt()),
        (State(answer_due=True, leaf=Leaf.RESULT, due=Due.CLEAR), ClearMind()),
        (State(answer_due=True, leaf=Leaf.TYPED, due=Due.CRITICAL), CarryNotice()),
        (State(answer_due=True, leaf=Leaf.TYPED, due=Due.CAUTION), Generate(attempt=1)),
        (State(answer_due=True, leaf=Leaf.TYPED, due=Due.CLEAR), Generate(attempt=1)),
        (State(answer_due=True, leaf=Leaf.INSERTED, due=Due.CRITICAL), Generate(attempt=1)),
        # A wait is waited before anything is asked.
        (State(answer_due=True, leaf=Leaf.TYPED, due=Due.CRITICAL, failures=1, retry_in=3), Wait(3)),
        # What is too long is not tried again as it is.
        (State(answer_due=True, failures=1, retry_in=0, overflowed=True), ClearMind(overflow=True)),
        # Whether it goes round in circles is looked for once the results are there, before anything is asked or said.
        (State(answer_due=True, leaf=Leaf.ANSWER, round_open=True, rounds=1, loop_check_due=True), RunTools()),
        (State(answer_due=True, leaf=Leaf.RESULT, due=Due.CLEAR, loop_check_due=True), LookForLoop()),
        (State(answer_due=True, leaf=Leaf.TYPED, loop_check_due=True, stop_requested=True), Halt()),
        (State(answer_due=False, autonomous=True, queued=1, loop_check_due=True), LookForLoop()),
        (State(answer_due=False, autonomous=True, paused=True, loop_check_due=True), Rest()),
        # Between turns: a new course, else the queue, else what remediation asks, else the push.
        (State(answer_due=False, due=Due.CLEAR, queued=1, autonomous=True), TakeQueued()),
        (State(answer_due=False, due=Due.CLEAR, autonomous=True), ClearMind()),
        (State(answer_due=True, due=Due.CLEAR, queued=1, leaf=Leaf.RESULT), TakeQueued()),
        (State(answer_due=False, due=Due.CRITICAL, queued=1, autonomous=True), TakeQueued()),
        (State(answer_due=False, due=Due.CRITICAL, autonomous=True), InsertPrompt()),
        (State(answer_due=False, due=Due.CAUTION, autonomous=True), InsertPrompt()),
        (State(answer_due=False, autonomous=True), Push()),
        # Paused: messages are answered, nothing else happens.
        (State(answer_due=False, paused=True, due=Due.CLEAR), Rest()),
        (State(answer_due=False, paused=True, due=Due.CRITICAL, autonomous=True), Rest()),
        (State(answer_due=False, paused=True, due=Due.CLEAR, queued=1), TakeQueued()),
        # A run that has used its generations ends in the middle of a turn too, but not before an answer.
        (State(answer_due=False, autonomous=True, run_used_up=True), EndRun()),
        # Nobody is there for whom it would go on.
        (State(answer_due=False, autonomous=True, owner_off=True, queued=1), PauseRun()),
        (State(answer_due=True, leaf=Leaf.ANSWER, round_open=True, autonomous=True, owner_off=True), PauseRun()),
        (State(answer_due=False, autonomous=True, owner_off=True, queued=1, paused=True), Rest()),
        (State(answer_due=True, round_open=True, waiting_for_person=True, autonomous=True, owner_off=True), Rest()),
        (State(answer_due=True, leaf=Leaf.RESULT, autonomous=True, run_used_up=True), EndRun()),
        (State(answer_due=True, leaf=Leaf.ANSWER, round_open=True, autonomous=True, run_used_up=True), EndRun()),
        (State(answer_due=True, leaf=Leaf.TYPED, autonomous=True, run_used_up=True), Generate(attempt=1)),
        (State(answer_due=False, trashed=True, due=Due.CLEAR, autonomous=True), Rest()),
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


@pytest.mark.parametrize(
    ("failures", "failing_for", "seconds"),
    [
        (1, 0, 2),
        (3, 60, 8),
        (12, 8_000, 900),
        (90, 80_000, 900),
        (95, 85_500, 900),  # the last try comes when the day is over
        (95, 85_501, None),
    ],
)
def test_an_agent_on_its_own_outlives_an_outage_of_a_day(
    failures: int, failing_for: float, seconds: float | None
) -> None:
    failure = Failure(retryable=True, failing_for=failing_for)

    assert retry_delay(failure, failures=failures, policy=POLICY, jitter=0) == seconds


def test_jitter_adds_up_to_a_quarter_in_an_outage_too() -> None:
    failure = Failure(retryable=True, failing_for=60)

    assert retry_delay(failure, failures=3, policy=POLICY, jitter=1) == 10


def test_an_agent_on_its_own_may_wait_less_than_a_second() -> None:
    quick = Policy(base_seconds=0.25)

    assert retry_delay(Failure(retryable=True, failing_for=0), failures=1, policy=quick, jitter=0) == 0.25


def test_an_agent_on_its_own_waits_as_long_as_a_server_wishes() -> None:
    failure = Failure(retryable=True, retry_after=7_200, failing_for=10)

    assert retry_delay(failure, failures=1, policy=POLICY, jitter=0) == 7_200


@pytest.mark.parametrize("failing_for", [None, 10])
def test_a_refusal_is_not_tried_again(failing_for: float | None) -> None:
    failure = Failure(retryable=False, failing_for=failing_for)

    assert retry_delay(failure, failures=1, policy=POLICY, jitter=0) is None


def test_retry_after_is_never_undercut() -> None:
    assert retry_delay(Failure(retryable=True, retry_after=30), failures=1, policy=POLICY, jitter=0) == 30


def test_a_retry_after_beyond_the_longest_wait_ends_the_tries() -> None:
    assert retry_delay(Failure(retryable=True, retry_after=3600), failures=1, policy=POLICY, jitter=0) is None
