"""Strategy `prioritize_recent`: keeps what is relevant to the task, what is recent and what is protected.

A round counts with the best score of its units. What goes leaves a placeholder at its gap. Where all is relevant
it is not applicable, and the chain goes on.
"""

from __future__ import annotations

from collections.abc import Sequence

from health.compaction.choosing import scoring
from health.compaction.laws.cuts import Cut, ceil_share, cuts, ids_of
from health.compaction.terms.ports import Attempt, Kit, StrategyRun, unchanged
from health.compaction.terms.reasons import Reason, Why, _
from health.compaction.terms.registry import strategy
from health.compaction.terms.units import ContextState, Kind
from health.compaction.trimming import placeholders


@strategy(
    icon="star",
    label=_("Prioritize recent"),
    choice=_("Keep what is recent and relevant"),
    message=_("Prioritizing P1 units & recent messages…"),
)
def prioritize_recent(state: ContextState, kit: Kit) -> StrategyRun:
    candidates = older(state, cuts(state.units))
    if not candidates:
        return unchanged(state, Why.ALL_RECENT)
    relevance = yield from scoring.relevance(state, kit, [unit for cut in candidates for unit in cut.units])
    if not relevance.known:
        return unchanged(state, Why.NO_TASK)
    threshold = state.config.prioritize_recent.rel_threshold
    going = [cut for cut in candidates if score(cut, relevance.scores) < threshold]
    gone = ids_of([*going, *_before(going, candidates)])
    if not gone:
        return unchanged(state, Why.ALL_RELEVANT)
    units = placeholders.with_gaps(state.units, gone, state.config, kit, brief=placeholders.LOW_RELEVANCE)
    if units == state.units:
        return unchanged(state, Why.IRRELEVANT_TOO_SMALL)
    dropped = [cut for cut in candidates if cut.units[0].id in gone]
    mean = sum(score(cut, relevance.scores) for cut in dropped) / len(dropped)
    figures = {"count": len(dropped), "most": len(candidates), "found": mean, "least": threshold}
    return Attempt(state=state.with_units(units), changed=True, why=Reason(Why.BELOW_RELEVANCE, figures))


def _before(going: Sequence[Cut], candidates: Sequence[Cut]) -> list[Cut]:
    """What leaves before them because a person tagged it P3, or P2, however relevant it is."""
    last = max((cut.turn for cut in going), default=0)
    return [cut for cut in candidates if cut.turn < last]


def older(state: ContextState, found: Sequence[Cut]) -> list[Cut]:
    """The cuts that have to earn their place: unprotected, and no unit among the last `recent_bias` of all."""
    recent = len(state.units) - ceil_share(len(state.units), state.config.prioritize_recent.recent_bias)
    return [cut for cut in found if cut.start + len(cut.units) <= recent and scorable(cut)]


def scorable(cut: Cut) -> bool:
    """Whether relevance decides about it: not about what is protected, nor about placeholders, which say nothing."""
    return not cut.protected and any(unit.kind is not Kind.PLACEHOLDER for unit in cut.units)


def score(cut: Cut, scores: dict[str, float]) -> float:
    return max(scores[unit.id] for unit in cut.units)
