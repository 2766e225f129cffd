"""Brings back the best of what a strategy took away, where it took more than the goal asked for.

A strategy's numbers say what may go, never that the context is to be left half empty. What went comes back up to nine
tenths of the goal: of messages that left the passages that are worth most, as `select_passages` weighs them; then,
whole, messages that were shortened. What a summary says word for word does not come back beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from health.compaction.choosing.sources import Frame, Source, sources_of
from health.compaction.reading.digest import is_digest, is_notice
from health.compaction.strategies.passage_view import View
from health.compaction.strategies.select_passages import LEAST_ROOM, chosen_order, reads_of
from health.compaction.terms.ports import Asking, Attempt, Kit
from health.compaction.terms.pressure import marks, tokens
from health.compaction.terms.units import WRITTEN, ContextState, Kind, Unit, total

REFILLED_SHARE = 0.9


def refilled(before: ContextState, attempt: Attempt, kit: Kit) -> Asking:
    """What the strategy made of `before`, filled up again; the attempt itself where there is nothing to fill."""
    after = before.having(kit.counted(attempt.state.units))
    target = _target(before)
    filled = replace(attempt, state=after)
    if target - after.estimated_tokens >= LEAST_ROOM:
        filled = yield from _with_passages(before, filled, kit, target_tokens=target)
    if target - filled.state.estimated_tokens >= LEAST_ROOM:
        stood = frozenset(unit.id for unit in after.units)
        filled = _with_whole(before, filled, stood=stood, target_tokens=target)
    return filled


def _target(state: ContextState) -> int:
    """Nine tenths of the goal; less where the ledger could then pass what is acceptable."""
    aims = marks(state.config, limit=state.limit)
    return min(int(REFILLED_SHARE * aims.goal), aims.accept - tokens(state.config.ledger_share, state.limit))


def _with_passages(before: ContextState, attempt: Attempt, kit: Kit, *, target_tokens: int) -> Asking:
    after = attempt.state
    gone = _may_return(before.units, after.units)
    merged = before.having(_merged(before.units, after.units, gone))
    kept = frozenset(unit.id for unit in after.units)
    frame = Frame(kept=kept, room=target_tokens - after.estimated_tokens)
    sources = _untold(sources_of(merged.units, frame), _written(before.units, after.units))
    if not sources:
        return attempt
    order = yield from chosen_order(sources, merged, kit, frame)
    view = View(state=merged, kit=kit, frame=frame, sources=sources)
    units = view.fitting(order, budget_tokens=target_tokens) if order else None
    if units is None or not _fits(merged, units, target_tokens) or not _is_more(units, after.units):
        return attempt
    filled = merged.having(_without_told_gaps(units, before.units))
    return replace(attempt, state=filled, reads=attempt.reads + reads_of(gone, frozenset()))


def _may_return(before: Sequence[Unit], after: Sequence[Unit]) -> tuple[Unit, ...]:
    """What left; of what compaction wrote only digests, as they are passages themselves."""
    standing = {unit.id for unit in after}
    gone = (unit for unit in before if unit.id not in standing)
    return tuple(unit for unit in gone if unit.kind not in WRITTEN or is_digest(unit))


def _untold(sources: Sequence[Source], written: Sequence[Unit]) -> list[Source]:
    """The sources without passages that a new summary says word for word."""
    told = "\n".join(_plain(unit.content) for unit in written if unit.kind is Kind.SUMMARY)
    left = [
        source._replace(chunks=[chunk for chunk in source.chunks if _plain(chunk.text) not in told])
        for source in sources
    ]
    return [source for source in (left if told else sources) if source.chunks]


def _plain(text: str) -> str:
    return " ".join(text.split())


def _written(before: Sequence[Unit], after: Sequence[Unit]) -> list[Unit]:
    known = {unit.id for unit in before}
    return [unit for unit in after if unit.id not in known]


def _merged(before: Sequence[Unit], after: Sequence[Unit], gone: Sequence[Unit]) -> list[Unit]:
    """What stands, as it stands, what was written, and what may return, in the order of the conversation."""
    place = {name: at for at, unit in enumerate(before) for name in (unit.id, *unit.source_ids)}
    own = {unit.id: at for at, unit in enumerate(before)}
    placed: list[tuple[float, Unit]] = []
    last = -1.0
    for unit in after:
        last = float(own[unit.id]) if unit.id in own else max(last, _place_of(unit, place) - 0.5)
        placed.append((last, unit))
    placed += [(float(own[unit.id]), unit) for unit in gone]
    return [unit for _, unit in sorted(placed, key=lambda pair: pair[0])]


def _place_of(written: Unit, place: dict[str, int]) -> float:
    """A gap's mark stands before all it stands for, a summary behind."""
    places = [place[source] for source in written.source_ids if source in place]
    if not places:
        return -1.0
    return float(min(places) if written.kind is Kind.PLACEHOLDER else max(places) + 1)


def _fits(state: ContextState, units: Sequence[Unit], target_tokens: int) -> bool:
    return state.overhead_tokens + total(units) <= target_tokens


def _is_more(units: Sequence[Unit], than: Sequence[Unit]) -> bool:
    standing = {unit.id for unit in than}
    return any(unit.id not in standing and unit.kind is not Kind.PLACEHOLDER for unit in units)


def _without_told_gaps(units: Sequence[Unit], before: Sequence[Unit]) -> Iterator[Unit]:
    """Without the marks of gaps that are none any more: the notice of the choice tells of what is left out."""
    known = {unit.id for unit in before}
    back = {source for unit in units if unit.kind is not Kind.PLACEHOLDER for source in unit.sources}
    for unit in units:
        is_gap = unit.kind is Kind.PLACEHOLDER and unit.id not in known
        if not is_gap or is_notice(unit) or back.isdisjoint(unit.source_ids):
            yield unit


def _with_whole(before: ContextState, attempt: Attempt, *, stood: frozenset[str], target_tokens: int) -> Attempt:
    """Messages that the strategy shortened as they were, the newest first."""
    short = {unit.id: unit for unit in attempt.state.units if unit.id in stood}
    room = target_tokens - attempt.state.estimated_tokens
    back: dict[str, Unit] = {}
    for unit in reversed(before.units):
        if unit.id in short and unit.content != short[unit.id].content:
            more = total([unit]) - total([short[unit.id]])
            if more <= room:
                back[unit.id] = unit
                room -= more
    return replace(attempt, state=attempt.state.having(back.get(unit.id, unit) for unit in attempt.state.units))
