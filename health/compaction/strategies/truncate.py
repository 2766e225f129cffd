"""Strategy `truncate`: the oldest unprotected cuts go until the goal is reached; one placeholder tells.

What a person tagged P3 goes before P2, and that before all else.

Also what `summarize_old` falls back to when its summary is not coherent, over the old part only.
"""

from __future__ import annotations

from collections.abc import Sequence

from health.compaction.laws.cuts import Cut, cuts, ids_of, oldest
from health.compaction.terms.ports import Attempt, Kit, StrategyRun, unchanged
from health.compaction.terms.pressure import targets
from health.compaction.terms.reasons import Why, _
from health.compaction.terms.registry import strategy
from health.compaction.terms.units import ContextState, total
from health.compaction.trimming import placeholders


@strategy(
    icon="cut",
    label=_("Truncate"),
    choice=_("Cut off what is oldest"),
    message=_("Dropping the oldest messages…"),
)
def truncate(state: ContextState, kit: Kit) -> StrategyRun:
    yield from ()
    return truncated(state, kit, cuts(state.units))


def truncated(state: ContextState, kit: Kit, old: Sequence[Cut]) -> Attempt:
    """The state without the oldest unprotected of these cuts, as many as it takes."""
    free = [cut for cut in old if not cut.protected]
    excess = state.estimated_tokens - targets(state.config, limit=state.limit).goal
    if excess <= 0:
        return unchanged(state, Why.AT_GOAL)
    if not free:
        return unchanged(state, Why.NOTHING_UNPROTECTED)
    # Room is kept for the largest placeholder there could be, so that the goal is met with it.
    largest = placeholders.of_earlier([unit for cut in free for unit in cut.units], state, kit)
    units = placeholders.with_one(state, ids_of(oldest(free, excess + total([largest]))), kit)
    if units == state.units:
        return unchanged(state, Why.SMALLER_THAN_PLACEHOLDER)
    return Attempt(state=state.with_units(units), changed=True)
