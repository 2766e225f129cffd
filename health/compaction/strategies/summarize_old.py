"""Strategy `summarize_old`: the first 60 % of the units become one summary of at most 300 tokens.

The split moves back to where no round is cut. Protected cuts of the old part stay where they are; the summary
stands where the last unit stood that it tells of, with its time, so the order stays chronological. Placeholders
stay too: nothing was read of what they stand for. An incoherent summary gives way to truncation of the old part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from health.compaction.choosing import scoring
from health.compaction.choosing.summaries import Summary, summary
from health.compaction.laws.cuts import Cut, cuts, floor_share, oldest
from health.compaction.strategies.truncate import truncated
from health.compaction.terms.ports import Attempt, Kit, StrategyRun, unchanged
from health.compaction.terms.pressure import targets
from health.compaction.terms.reasons import Reason, Why, _
from health.compaction.terms.registry import strategy
from health.compaction.terms.units import ContextState, Kind, Unit, highest_priority, synthetic_id, written_for
from health.compaction.trimming import placeholders


@strategy(
    icon="compress",
    label=_("Summarize old"),
    choice=_("Summarise what is old"),
    message=_("Summarizing old context…"),
    expecting=_("Summarizing old context… (est. %(before)s → %(after)s tokens)"),
    pulses=True,
)
def summarize_old(state: ContextState, kit: Kit) -> StrategyRun:
    old = old_part(state)
    gone = to_summarise(state, old)
    if all(unit.kind is Kind.SUMMARY for unit in gone):
        return unchanged(state, Why.NOTHING_OLD)
    settings, focus = state.config.summarize_old, scoring.query_of(state)
    written: Summary = yield from summary(
        originals_of(state, gone), max_tokens=settings.summary_length, kit=kit, focus=focus
    )
    if not written.text:
        return _truncated(state, kit, old, Why.NO_SUMMARY_FITS)
    after = state.with_units(_replaced(state, gone, written.text, kit))
    if after.estimated_tokens >= state.estimated_tokens:
        return unchanged(state, Why.SUMMARY_NOT_SMALLER)
    coherence = yield from scoring.coherence(state.units, after.units, query=focus)
    if coherence < settings.min_coherence:
        under = {"found": coherence, "least": settings.min_coherence}
        return _truncated(state, kit, old, Why.COHERENCE_UNDER, **under)
    found = {"found": coherence}
    why = Reason(Why.COHERENCE_AND, {**found, "why": written.why}) if written.why else Reason(Why.COHERENCE, found)
    return Attempt(state=after, changed=True, why=why, reads=written.reads)


def old_part(state: ContextState) -> list[Cut]:
    """The cuts that end within the first `old_threshold` of the units."""
    split = floor_share(len(state.units), state.config.summarize_old.old_threshold)
    return [cut for cut in cuts(state.units) if cut.start + len(cut.units) <= split]


def to_summarise(state: ContextState, old: Sequence[Cut]) -> list[Unit]:
    """What a summary is to tell: of the old part the oldest, as many as bring it with the rest to the goal."""
    excess = state.estimated_tokens - targets(state.config, limit=state.limit).goal
    if excess <= 0:
        return list(_unprotected(old))
    free = [cut for cut in old if not cut.protected]
    going = oldest(free, excess + state.config.summarize_old.summary_length)
    return list(_unprotected(sorted(going, key=lambda cut: cut.start)))


def _unprotected(found: Iterable[Cut]) -> Iterator[Unit]:
    """What is unprotected and no mark of a gap: nothing was read of what such a mark stands for."""
    return (unit for cut in found if not cut.protected for unit in cut.units if unit.kind is not Kind.PLACEHOLDER)


def originals_of(state: ContextState, gone: Sequence[Unit]) -> list[Unit]:
    """What the summary is made from: originals, not digests. An earlier summary only where its originals are away."""
    known = {unit.id: unit for unit in (*state.originals, *state.units) if unit.kind is not Kind.SUMMARY}
    source: dict[str, Unit] = {}
    for unit in gone:
        originals = [known[one] for one in unit.source_ids if one in known]
        complete = unit.source_ids and len(originals) == len(unit.source_ids)
        source.update((one.id, one) for one in (originals if complete else [unit]))
    return list(source.values())


def _replaced(state: ContextState, gone: Sequence[Unit], text: str, kit: Kit) -> tuple[Unit, ...]:
    own_id = synthetic_id("summary", (unit.id for unit in gone))
    written = written_for(gone, Kind.SUMMARY, "summary", text, id=own_id, priority=highest_priority(gone))
    ids, last = {unit.id for unit in gone}, gone[-1].id
    units = kit.counted(
        written if unit.id == last else unit for unit in state.units if unit.id == last or unit.id not in ids
    )
    return placeholders.with_gaps(units, frozenset(), state.config, kit)


def _truncated(state: ContextState, kit: Kit, old: Sequence[Cut], because: Why, **found: float) -> Attempt:
    attempt = truncated(state, kit, old)
    then = attempt.why or Reason(Why.OLDEST_DROPPED)
    return replace(attempt, why=Reason(because, {**found, "why": then}))
