"""Guards the turn of one strategy. If it raises, breaks a law or does not shrink the context, the state stays as it
was, and the attempt says why: a failure lowers the quality of a compaction, never the availability of a dialog.

After each turn the ledger is written anew and every law is checked.

A strategy's numbers say what may go, not that the context must end up half empty. If it took more than the goal asks
for, the context is refilled up to nine tenths of the goal: first with the passages of dropped messages that are worth
most, as `select_passages` weighs them, then with shortened messages as they were. What a new summary says word for word
does not come back.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from health.compaction.choosing.sources import Frame, Source, sources_of
from health.compaction.laws.floor import is_handover
from health.compaction.laws.invariants import broken
from health.compaction.laws.weave import ledger_tokens, without_ledger, woven
from health.compaction.reading.digest import is_digest, is_notice
from health.compaction.reading.ledger import Ledger, extract
from health.compaction.reading.ledger_page import is_seen, normal
from health.compaction.strategies.passage_context import PassageContext
from health.compaction.strategies.select_passages import LEAST_ROOM, chosen_order
from health.compaction.terms.outcome import Step
from health.compaction.terms.ports import (
    Attempt,
    Embed,
    Embedded,
    Kit,
    Need,
    Strategy,
    StrategyRun,
    read_in_full,
    unchanged,
)
from health.compaction.terms.pressure import at_goal, targets, tokens
from health.compaction.terms.reasons import Reason, Why
from health.compaction.terms.units import WRITTEN, ContextState, Kind, Role, Unit, total

LEXICAL = "lexical"


@dataclass
class RunLog:
    """What a run records: its steps with their times, the embedders that answered, and the ledger of each state.

    `taken_back` are rules that bind no more, `laid_down` is the ledger of what was said before the first unit.
    """

    taken_back: tuple[str, ...] = ()
    laid_down: tuple[Unit, ...] = ()
    steps: list[Step] = field(default_factory=list)
    embedders: dict[str, None] = field(default_factory=dict)
    extracted: list[tuple[tuple[Unit, ...], Ledger]] = field(default_factory=list)

    def entries(self, units: tuple[Unit, ...]) -> Ledger:
        """The ledger of these units, extracted once: reading them all costs more than a strategy.

        It is the ledger that the run began with if these units lack something that the user laid down.
        """
        for known, entries in self.extracted:
            if known is units:
                return entries
        found = extract((*self.laid_down, *units) if self.laid_down else units, self.taken_back)
        begun = self.extracted[0][1] if self.extracted else found
        self.extracted.append((units, found if _stated_by_user(begun) <= _stated_by_user(found) else begun))
        return self.extracted[-1][1]

    @property
    def unread(self) -> tuple[Reason, ...]:
        """Why some statements could not be read: each reason once."""
        names = dict.fromkeys(entries.unread for _, entries in self.extracted if entries.unread)
        return tuple(Reason(Why.UNREAD, {"name": name}) for name in names)

    def report(self, *steps: Step) -> Generator[Step, Any, None]:
        """The runner sends each step back with its time; one who does not care sends nothing."""
        for step in steps:
            timed = yield step
            self.steps.append(timed or step)

    def listening(self, asking: Generator[Need, Any, Any]) -> Generator[Need, Any, Any]:
        """Runs `asking` to its end, passes on its needs, and records which embedder answered."""
        answer: Any = None
        try:
            while True:
                need = asking.send(answer)
                answer = yield need
                if isinstance(need, Embed):
                    self.embedders[answer.name if isinstance(answer, Embedded) else LEXICAL] = None
        except StopIteration as end:
            return end.value
        finally:
            asking.close()


def _stated_by_user(entries: Ledger) -> set[str]:
    return {normal(entry.text) for entry in entries if entry.role is Role.USER and not is_seen(entry)}


def attempted(
    strategy: Strategy, state: ContextState, kit: Kit, *, recovering: bool = False, fills_up: bool = False
) -> StrategyRun:
    """What the strategy makes of the state, if it is lawful and smaller; else the state, and why.

    With `fills_up` the best of what it took beyond the goal comes back.
    """
    try:
        attempt: Attempt = yield from strategy(without_ledger(state), kit)
        if not attempt.changed:
            return replace(attempt, state=state)
        done = _checked(state, attempt, kit, recovering=recovering)
        return (yield from _filled(state, attempt, done, kit)) if fills_up and done.changed else done
    except Exception as error:
        return unchanged(state, Reason(Why.FAILED, {"name": f"{type(error).__name__}: {error}"}))


def _filled(state: ContextState, attempt: Attempt, done: Attempt, kit: Kit) -> StrategyRun:
    """The refilled step, if it keeps the laws and the goal; else the step as it was."""
    try:
        more: Attempt = yield from refilled(without_ledger(state), attempt, kit)
        if more.state.units == attempt.state.units:
            return done
        filled = _checked(state, more, kit, recovering=False)
    except Exception:
        return done
    return filled if filled.changed and at_goal(filled.state, ledger_tokens(filled.state)) else done


def _checked(state: ContextState, attempt: Attempt, kit: Kit, *, recovering: bool) -> Attempt:
    units = woven(state, attempt.state.units, kit)
    # The ledger moves to where the first message left. An earlier handover is priority 1, yet a new one retells it.
    before = [unit for unit in without_ledger(state).units if not (recovering and is_handover(unit))]
    faults = broken(before, units, may_change=attempt.forced_ids)
    if faults:
        return unchanged(state, Reason(Why.LAW_BROKEN, {"why": faults[0]}))
    after = state.with_units(units)
    # What must stay leaves no room: a ledger of it may take what was gained for now.
    has_to = bool(attempt.forced) and not state.fits
    if after.estimated_tokens >= state.estimated_tokens and not (has_to or _lets_the_ledger_in(state, after)):
        return unchanged(state, Why.NOT_SMALLER)
    return replace(attempt, state=after)


def _lets_the_ledger_in(state: ContextState, after: ContextState) -> bool:
    """Does the ledger grow by all that was gained? Then an earlier step had left it no room."""
    gained = ledger_tokens(after) - ledger_tokens(state)
    return after.fits and gained > 0 and after.estimated_tokens - gained < state.estimated_tokens


REFILLED_SHARE = 0.9


def refilled(before: ContextState, attempt: Attempt, kit: Kit) -> StrategyRun:
    """What the strategy made of `before`, filled up again; the attempt itself where there is nothing to fill."""
    after = before.with_units(kit.counted(attempt.state.units))
    aims = targets(before.config, limit=before.limit)
    # Less where the ledger could then pass what is acceptable.
    target = min(int(REFILLED_SHARE * aims.goal), aims.accept - tokens(before.config.ledger_share, before.limit))
    filled = replace(attempt, state=after)
    if target - after.estimated_tokens >= LEAST_ROOM:
        filled = yield from _with_passages(before, filled, kit, target_tokens=target)
    if target - filled.state.estimated_tokens >= LEAST_ROOM:
        stood = frozenset(unit.id for unit in after.units)
        filled = _with_whole(before, filled, stood=stood, target_tokens=target)
    return filled


def _with_passages(before: ContextState, attempt: Attempt, kit: Kit, *, target_tokens: int) -> StrategyRun:
    after = attempt.state
    gone = _may_return(before.units, after.units)
    merged = before.with_units(_merged(before.units, after.units, gone))
    kept = frozenset(unit.id for unit in after.units)
    frame = Frame(kept=kept, room=target_tokens - after.estimated_tokens)
    known = {unit.id for unit in before.units}
    written = [unit for unit in after.units if unit.id not in known]
    sources = _not_yet_said(sources_of(merged.units, frame), written)
    if not sources:
        return attempt
    order = yield from chosen_order(sources, merged, kit, frame)
    view = PassageContext(state=merged, kit=kit, frame=frame, sources=sources)
    units = view.fitting(order, budget_tokens=target_tokens) if order else None
    if units is None or merged.overhead_tokens + total(units) > target_tokens or not _is_more(units, after.units):
        return attempt
    filled = merged.with_units(_without_filled_gaps(units, before.units))
    return replace(attempt, state=filled, reads=attempt.reads + read_in_full(gone))


def _may_return(before: Sequence[Unit], after: Sequence[Unit]) -> tuple[Unit, ...]:
    """The dropped messages. Of units that compaction wrote only digests may return: they consist of passages."""
    standing = {unit.id for unit in after}
    gone = (unit for unit in before if unit.id not in standing)
    return tuple(unit for unit in gone if unit.kind not in WRITTEN or is_digest(unit))


def _not_yet_said(sources: Sequence[Source], written: Sequence[Unit]) -> list[Source]:
    """The sources without passages that a new summary says word for word."""
    said = "\n".join(_plain(unit.content) for unit in written if unit.kind is Kind.SUMMARY)
    left = [
        source._replace(chunks=[chunk for chunk in source.chunks if _plain(chunk.text) not in said])
        for source in sources
    ]
    return [source for source in (left if said else sources) if source.chunks]


def _plain(text: str) -> str:
    return " ".join(text.split())


def _merged(before: Sequence[Unit], after: Sequence[Unit], gone: Sequence[Unit]) -> list[Unit]:
    """The units that stand, new ones among them, and those that may return, in the order of the conversation."""
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


def _is_more(units: Sequence[Unit], than: Sequence[Unit]) -> bool:
    standing = {unit.id for unit in than}
    return any(unit.id not in standing and unit.kind is not Kind.PLACEHOLDER for unit in units)


def _without_filled_gaps(units: Sequence[Unit], before: Sequence[Unit]) -> Iterator[Unit]:
    """Without new placeholders of messages that are back: the notice of the choice says that something is left out."""
    known = {unit.id for unit in before}
    back = {source for unit in units if unit.kind is not Kind.PLACEHOLDER for source in unit.sources}
    for unit in units:
        is_gap = unit.kind is Kind.PLACEHOLDER and unit.id not in known
        if not is_gap or is_notice(unit) or back.isdisjoint(unit.source_ids):
            yield unit


def _with_whole(before: ContextState, attempt: Attempt, *, stood: frozenset[str], target_tokens: int) -> Attempt:
    """With shortened messages as they were before, the newest first, as far as there is room."""
    short = {unit.id: unit for unit in attempt.state.units if unit.id in stood}
    room = target_tokens - attempt.state.estimated_tokens
    back: dict[str, Unit] = {}
    for unit in reversed(before.units):
        if unit.id in short and unit.content != short[unit.id].content:
            more = total([unit]) - total([short[unit.id]])
            if more <= room:
                back[unit.id] = unit
                room -= more
    return replace(attempt, state=attempt.state.with_units(back.get(unit.id, unit) for unit in attempt.state.units))
