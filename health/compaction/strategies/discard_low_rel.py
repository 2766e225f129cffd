"""Strategy `discard_low_rel`: the least relevant 30 % of the units go, by whole rounds, a placeholder at each gap.

At most n − ceil(0.7 n) of all n units (placeholders are none), chosen among the unprotected; chronological order
stays. Undone when the rest is no longer coherent; then a summary is tried, once,
unless the chain had its turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from health.compaction.choosing import scoring
from health.compaction.laws.cuts import Cut, ceil_share, cuts, ids_of
from health.compaction.strategies.prioritize_recent import scorable, score
from health.compaction.strategies.summarize_old import summarize_old
from health.compaction.terms.ports import Attempt, Kit, StrategyRun, unchanged
from health.compaction.terms.reasons import Reason, Why, _
from health.compaction.terms.registry import strategy
from health.compaction.terms.units import ContextState, Kind
from health.compaction.trimming import placeholders


@strategy(
    icon="clear-all",
    label=_("Discard low relevance"),
    choice=_("Discard what is least relevant"),
    message=_("Removing low-relevance units…"),
)
def discard_low_rel(state: ContextState, kit: Kit) -> StrategyRun:
    candidates = [cut for cut in cuts(state.units) if scorable(cut)]
    number = sum(1 for unit in state.units if unit.kind is not Kind.PLACEHOLDER)
    allowed = number - ceil_share(number, 1 - state.config.discard_low_rel.discard_percent)
    if not candidates or not allowed:
        return unchanged(state, Why.TOO_FEW_UNITS)
    relevance = yield from scoring.relevance(state, kit, [unit for cut in candidates for unit in cut.units])
    if not relevance.known:
        return unchanged(state, Why.NO_TASK)
    gone = ids_of(_lowest(candidates, relevance.scores, allowed))
    units = placeholders.with_gaps(state.units, gone, state.config, kit, brief=placeholders.LOW_RELEVANCE)
    if units == state.units:
        return unchanged(state, Why.LARGER_THAN_SHARE)
    return (yield from _if_coherent(state, state.with_units(units), kit))


def _lowest(candidates: Sequence[Cut], scores: dict[str, float], allowed: int) -> Iterator[Cut]:
    """P3 before P2 before all else, of each the least relevant cuts, the older first among equals.

    One with more units than are still allowed stays.
    """
    for cut in sorted(candidates, key=lambda cut: (cut.turn, score(cut, scores))):
        if len(cut.units) <= allowed:
            allowed -= len(cut.units)
            yield cut


def _if_coherent(before: ContextState, after: ContextState, kit: Kit) -> StrategyRun:
    coherence = yield from scoring.coherence(before.units, after.units, query=scoring.query_of(before))
    bound = before.config.discard_low_rel.min_coherence
    if coherence >= bound:
        return Attempt(state=after, changed=True, why=Reason(Why.COHERENCE, {"found": coherence}))
    undone = Reason(Why.UNDONE, {"found": coherence, "least": bound})
    if _had_a_summary(before.config.chain_order):
        return unchanged(before, undone)
    summarised: Attempt = yield from summarize_old(before, kit)
    other = summarised.why or Reason(Why.DONE)
    return replace(summarised, why=Reason(Why.TRIED_SUMMARY, {"why": undone, "other": other}))


def _had_a_summary(chain: Sequence[str]) -> bool:
    """Whether the chain tries `summarize_old` before this strategy anyway."""
    here = chain.index("discard_low_rel") if "discard_low_rel" in chain else 0
    return "summarize_old" in chain[:here]
