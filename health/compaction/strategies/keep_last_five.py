"""Strategies that keep the last five messages whole: alone, and with passages of all that was said before them.

`keep_last_five`: what is protected and the last five messages, by whole rounds. If that is too much: the
oldest rounds of the five go as far as the last three messages, then the largest unprotected tool results are
shortened to their head and tail. One placeholder stands for all that went.

`passages_keep_last_five`: `select_passages`, as if the rounds of the last five messages were pinned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from health.compaction.laws.cuts import Cut, cuts, ids_of, oldest
from health.compaction.strategies.select_passages import select_passages
from health.compaction.terms.ports import Attempt, Kit, StrategyRun, unchanged
from health.compaction.terms.reasons import Why, _
from health.compaction.terms.registry import strategy
from health.compaction.terms.units import ContextState, Role, total
from health.compaction.trimming import placeholders
from health.compaction.trimming.clamp import evened

KEPT_MESSAGES = 5
LEAST_MESSAGES = 3


@strategy(
    icon="clear-all",
    label=_("Keep last five"),
    choice=_("Keep the last five rounds"),
    message=_("Keeping the last five messages…"),
)
def keep_last_five(state: ContextState, kit: Kit) -> StrategyRun:
    yield from ()
    found = cuts(state.units)
    earlier = _before_the_last(KEPT_MESSAGES, found, state)
    newer = _before_the_last(LEAST_MESSAGES, found, state)[len(earlier) :]
    gone = [*earlier, *oldest(newer, _excess_without(earlier, newer, state, kit))]
    dropped = state.with_units(placeholders.with_one(state, ids_of(gone), kit))
    after = _with_short_results(dropped, kit)
    if after.units == state.units:
        return unchanged(state, Why.ONLY_LAST_AND_PROTECTED)
    return Attempt(state=after, changed=True)


@strategy(
    icon="star",
    label=_("Passages and last five"),
    choice=_("Choose passages, and keep the last five rounds"),
    message=_("Selecting passages beside the last five messages…"),
)
def passages_keep_last_five(state: ContextState, kit: Kit) -> StrategyRun:
    begin = len(state.units) - KEPT_MESSAGES
    held = ids_of(cut for cut in cuts(state.units) if not cut.protected and cut.start + len(cut.units) > begin)
    guarded = state.with_units(replace(unit, pinned=True) if unit.id in held else unit for unit in state.units)
    attempt: Attempt = yield from select_passages(guarded, kit)
    if not attempt.changed:
        return unchanged(state, attempt.why)
    own = {unit.id: unit for unit in state.units if unit.id in held}
    return replace(attempt, state=state.with_units(own.get(unit.id, unit) for unit in attempt.state.units))


def _before_the_last(messages: int, found: Sequence[Cut], state: ContextState) -> list[Cut]:
    """The unprotected cuts that end before the last so many messages begin."""
    end = len(state.units) - messages
    return [cut for cut in found if not cut.protected and cut.start + len(cut.units) <= end]


def _excess_without(earlier: Sequence[Cut], newer: Sequence[Cut], state: ContextState, kit: Kit) -> int:
    """By how much the limit is passed when the earlier cuts are gone and a placeholder tells of all."""
    gone = [unit for cut in (*earlier, *newer) for unit in cut.units]
    excess = state.estimated_tokens - sum(cut.tokens for cut in earlier) - state.limit
    if excess <= 0 or not gone:
        return excess
    return excess + total([placeholders.of_earlier(gone, state, kit)])


def _with_short_results(state: ContextState, kit: Kit) -> ContextState:
    """The state with its largest unprotected results shortened until it fits, if they can do that."""
    if state.fits:
        return state
    free = [unit for cut in cuts(state.units) if not cut.protected for unit in cut.units]
    results = frozenset(unit.id for unit in free if unit.role is Role.TOOL)
    excess = state.estimated_tokens - state.limit
    return state.with_units(evened(state.units, may=results, excess=excess, kit=kit))
