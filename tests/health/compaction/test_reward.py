"""The plan's reward formula, its example numbers, and the gaps that are closed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from health.compaction.reward import priority_preserved, reward
from health.compaction.terms.outcome import BreakingOutcome
from health.compaction.terms.units import Kind
from tests.health.compaction.builders import a_unit, p1

SUCCESS = BreakingOutcome(
    success=True,
    used_recovery=False,
    coherence_delta=0.0,
    tokens_reduced=0,
    time_ms=200,
    priority_preserved=0.0,
    original_tokens=6000,
)
FAILURE = replace(SUCCESS, success=False)


@pytest.mark.parametrize(
    ("run", "earned"),
    [
        (replace(SUCCESS, coherence_delta=-0.1, tokens_reduced=3000, priority_preserved=1.0), 1.30),
        (SUCCESS, 1.0),
        (FAILURE, -1.0),
        (replace(FAILURE, used_recovery=True), -1.7),
        (replace(SUCCESS, used_recovery=True), 0.3),
        (replace(SUCCESS, time_ms=500), 1.0),
        (replace(SUCCESS, time_ms=501), 1 - 0.0501),  # the step at 500 ms is the first plan's
        (replace(FAILURE, used_recovery=True, time_ms=12_000), -2),
        (replace(SUCCESS, coherence_delta=9.0), 2),
        (replace(SUCCESS, original_tokens=0, tokens_reduced=0), 1.0),  # no division by nothing
        (replace(FAILURE, coherence_delta=1.0, priority_preserved=1.0), -1.0),  # nothing is earned by a failure
    ],
)
def test_the_reward_follows_the_formula(run: BreakingOutcome, earned: float) -> None:
    assert reward(run) == pytest.approx(earned)


def test_priority_preserved_is_the_share_of_p1_messages_that_stand_word_for_word() -> None:
    kept, changed, gone = p1(a_unit("kept")), p1(a_unit("changed")), p1(a_unit("gone"))

    assert priority_preserved([kept, changed, gone], [kept, changed.saying("c")]) == pytest.approx(1 / 3)


def test_without_p1_all_priorities_are_preserved() -> None:
    assert priority_preserved([a_unit("other")], []) == 1.0


def test_a_handover_of_an_earlier_run_is_no_p1_message() -> None:
    handover = p1(a_unit("Resuming from overflow: …", kind=Kind.SUMMARY))

    assert priority_preserved([handover], []) == 1.0
