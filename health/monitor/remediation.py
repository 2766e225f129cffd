"""Decides when the agent gets a prompt to write down what matters, and when a new course begins by itself. PURE.

Two counters, one for each level above healthy. In caution a prompt is due on entry and then every
`cadence` generations: 1, 11, 21. In critical five prompts say 4, 3, 2, 1, 0 more; the next reading that is
still critical makes a new course due. A new course starts from `Remediation()`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from health.monitor.levels import Level

COUNTDOWN_TURNS = 5


class Due(StrEnum):
    """What the newest reading requires. It stays due until given; no prompt repeats without a new reading."""

    NOTHING = ""
    CAUTION = "caution"
    CRITICAL = "critical"
    CLEAR = "clear"


@dataclass(frozen=True, kw_only=True)
class Remediation:
    """The state of remediation in one course.

    `level` is the last one that was measured, never UNKNOWN. `caution_generations` counts the readings since
    caution was entered; `countdown_turns` the prompts that critical still allows.
    """

    level: Level = Level.HEALTHY
    caution_generations: int = 0
    countdown_turns: int = COUNTDOWN_TURNS
    due: Due = Due.NOTHING


def _healthy(_state: Remediation, _cadence: int) -> Remediation:
    return Remediation()


def _caution(state: Remediation, cadence: int) -> Remediation:
    entered = state.level is not Level.CAUTION
    generations = 1 if entered else state.caution_generations + 1
    on_cadence = (generations - 1) % cadence == 0
    due = Due.CAUTION if on_cadence else state.due
    return Remediation(level=Level.CAUTION, caution_generations=generations, due=due)


def _critical(state: Remediation, _cadence: int) -> Remediation:
    turns = state.countdown_turns if state.level is Level.CRITICAL else COUNTDOWN_TURNS
    return Remediation(level=Level.CRITICAL, countdown_turns=turns, due=Due.CRITICAL if turns else Due.CLEAR)


def _hold(state: Remediation, _cadence: int) -> Remediation:
    """The state unchanged, as nothing was measured: no new prompt becomes due, and no counter changes."""
    return state


STEPS: dict[Level, Callable[[Remediation, int], Remediation]] = {
    Level.HEALTHY: _healthy,
    Level.CAUTION: _caution,
    Level.CRITICAL: _critical,
    Level.UNKNOWN: _hold,
}


def step(state: Remediation, level: Level, *, cadence: int) -> Remediation:
    """The state after one more reading. `cadence` in generations, at least 1."""
    return STEPS[level](state, cadence)


def given(state: Remediation) -> Remediation:
    """The due prompt has been given. In critical the countdown decreases by one."""
    used = 1 if state.due is Due.CRITICAL else 0
    return replace(state, due=Due.NOTHING, countdown_turns=state.countdown_turns - used)


def overflowed(state: Remediation) -> Remediation:
    """The provider refused the prompt as too long: critical, and a new course is due without a countdown."""
    return replace(state, level=Level.CRITICAL, countdown_turns=0, due=Due.CLEAR)


def generations_to_next_prompt(state: Remediation, *, cadence: int) -> int | None:
    """How many more caution generations until the next prompt; None outside caution."""
    if state.level is not Level.CAUTION:
        return None
    return cadence - (state.caution_generations - 1) % cadence
