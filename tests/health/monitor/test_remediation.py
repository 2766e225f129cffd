"""Remediation as a table: prompts on entry and on the cadence, the countdown, and what holds or resets it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from health.monitor.levels import Level
from health.monitor.remediation import Due, Remediation, generations_to_next_prompt, given, overflowed, step

H, Y, R, U = Level.HEALTHY, Level.CAUTION, Level.CRITICAL, Level.UNKNOWN


def play(levels: list[Level], *, cadence: int = 10) -> list[str]:
    """What was due after each reading, when every due prompt is given at once and a clear opens a new course."""
    state, dues = Remediation(), []
    for level in levels:
        state = step(state, level, cadence=cadence)
        dues.append(str(state.due))
        state = Remediation() if state.due is Due.CLEAR else given(state)
    return dues


def at(dues: list[str], due: Due) -> list[int]:
    """The readings, counted from 1, after which this was due."""
    return [number for number, found in enumerate(dues, start=1) if found == due]


@pytest.mark.parametrize(
    ("cadence", "prompts"),
    [(10, [1, 11, 21]), (3, [1, 4, 7, 10, 13, 16, 19, 22]), (1, list(range(1, 23)))],
)
def test_caution_asks_on_entry_and_then_on_the_cadence_and_never_opens_a_new_course(
    cadence: int, prompts: list[int]
) -> None:
    dues = play([Y] * 500, cadence=cadence)

    assert [number for number in at(dues, Due.CAUTION) if number <= 22] == prompts
    assert Due.CLEAR not in dues


def test_critical_asks_five_times_and_then_clears_and_a_new_course_begins_the_countdown_anew() -> None:
    """The five prompts leave four, three, two, one and none."""
    assert play([R] * 12) == [*["critical"] * 5, "clear"] * 2

    state, left = Remediation(), []
    for _turn in range(5):
        state = given(step(state, R, cadence=10))
        left.append(state.countdown_turns)
    assert left == [4, 3, 2, 1, 0]


@pytest.mark.parametrize(
    ("levels", "dues"),
    [
        # An unknown reading neither asks nor counts, wherever it comes.
        ([U, U], ["", ""]),
        ([Y, U, Y], ["caution", "", ""]),
        ([R, U, R, R, R, R, R], ["critical", "", *["critical"] * 4, "clear"]),
        # Healthy resets both counters.
        ([Y, H, Y], ["caution", "", "caution"]),
        ([R, R, H, R, R, R, R, R, R], ["critical", "critical", "", *["critical"] * 5, "clear"]),
        # From critical back to caution: the entry prompt is due again, and so is the whole countdown.
        ([Y, R, Y], ["caution", "critical", "caution"]),
        ([R, R, Y, R, R, R, R, R, R], ["critical", "critical", "caution", *["critical"] * 5, "clear"]),
        # Unknown between the two changes nothing about that.
        ([R, U, Y], ["critical", "", "caution"]),
    ],
)
def test_what_holds_and_what_resets(levels: list[Level], dues: list[str]) -> None:
    assert play(levels) == dues


def test_a_caution_prompt_that_could_not_be_given_stays_due() -> None:
    waiting = step(step(Remediation(), Y, cadence=10), Y, cadence=10)

    assert waiting.due is Due.CAUTION
    assert step(waiting, U, cadence=10).due is Due.CAUTION
    assert step(waiting, H, cadence=10).due is Due.NOTHING


def test_a_caution_prompt_that_waited_does_not_become_a_critical_one() -> None:
    waiting = step(Remediation(), Y, cadence=10)

    assert given(step(waiting, R, cadence=10)).countdown_turns == 4


def test_entering_a_level_counts_anew_whatever_stood_before() -> None:
    """As an imported course may have it, or one whose prompt was refused as too long."""
    caution = step(Remediation(level=R, caution_generations=4), Y, cadence=10)

    assert (caution.caution_generations, caution.due) == (1, Due.CAUTION)
    assert step(Remediation(level=Y, countdown_turns=2), R, cadence=10).countdown_turns == 5


def test_outside_caution_no_generations_are_counted() -> None:
    caution = step(Remediation(), Y, cadence=10)

    assert [step(caution, level, cadence=10).caution_generations for level in (H, R)] == [0, 0]


def test_an_overflow_makes_a_new_course_due_at_once_and_no_countdown_is_left() -> None:
    assert overflowed(step(Remediation(), H, cadence=10)).due is Due.CLEAR
    assert step(overflowed(Remediation()), R, cadence=10).due is Due.CLEAR


@pytest.mark.parametrize(
    ("levels", "left"), [([Y], 10), ([Y] * 2, 9), ([Y] * 10, 1), ([Y] * 11, 10), ([Y] * 14, 7), ([R], None)]
)
def test_the_next_prompt_is_announced_in_caution(levels: list[Level], left: int | None) -> None:
    state = Remediation()
    for level in levels:
        state = given(step(state, level, cadence=10))

    assert generations_to_next_prompt(state, cadence=10) == left


@for_all(levels=st.lists(st.sampled_from([H, Y, R, U]), max_size=60), cadence=st.integers(1, 12))
def test_no_run_of_readings_asks_more_than_five_times_between_two_clears(levels: list[Level], cadence: int) -> None:
    dues = play(levels, cadence=cadence)
    asked = 0
    for level, due in zip(levels, dues, strict=True):
        asked = 0 if level in (H, Y) or due == Due.CLEAR else asked + (due == Due.CRITICAL)
        assert asked <= 5
        assert due != Due.CLEAR or level is R


@for_all(levels=st.lists(st.sampled_from([H, Y, R, U]), max_size=60))
def test_leaving_out_the_unknown_readings_changes_nothing(levels: list[Level]) -> None:
    known = [level for level in levels if level is not U]
    with_gaps = [due for level, due in zip(levels, play(levels), strict=True) if level is not U]

    assert with_gaps == play(known)


@for_all(levels=st.lists(st.sampled_from([H, Y, R]), min_size=1, max_size=60))
def test_every_entry_into_caution_asks(levels: list[Level]) -> None:
    dues = play(levels)

    entries = [n for n, (before, now) in enumerate(pairwise([H, *levels])) if now is Y and before is not Y]
    assert all(dues[n] == Due.CAUTION for n in entries)
