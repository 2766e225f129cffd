"""One strategy's turn, guarded: whatever it does wrong, the state stays as it was, and the note says what it was.

After each turn the ledger is made anew and every law is checked. A strategy that raises, breaks a law or does not
shrink changes nothing: a helper's failure lowers the quality of a compaction, never the availability of a dialog.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import Any

from health.compaction.laws.floor import is_handover
from health.compaction.laws.invariants import broken
from health.compaction.laws.weave import ledger_tokens, without_ledger, woven
from health.compaction.reading.ledger import Ledger, extract
from health.compaction.reading.ledger_book import normal
from health.compaction.reading.ledger_page import is_seen
from health.compaction.refill import refilled
from health.compaction.terms.outcome import Step
from health.compaction.terms.ports import Asking, Attempt, Embed, Embedded, Kit, Need, Strategy, unchanged
from health.compaction.terms.pressure import at_goal
from health.compaction.terms.reasons import Reason, Why
from health.compaction.terms.units import ContextState, Role, Unit

LEXICAL = "lexical"


@dataclass
class Journal:
    """What a run writes down on its way: the steps as they were timed, who embedded, and what binds at which state.

    `taken_back` are rules that bind no more, `laid_down` is what was said before the first of all units.
    """

    taken_back: tuple[str, ...] = ()
    laid_down: tuple[Unit, ...] = ()
    steps: list[Step] = field(default_factory=list)
    embedders: dict[str, None] = field(default_factory=dict)
    extracted: list[tuple[tuple[Unit, ...], Ledger]] = field(default_factory=list)

    def entries(self, units: tuple[Unit, ...]) -> Ledger:
        """The ledger's entries after these units, extracted once: reading all there is costs more than a strategy.

        They are those that the run began with, where a step since left no room for all of what the user laid down.
        """
        for known, entries in self.extracted:
            if known is units:
                return entries
        found = extract((*self.laid_down, *units) if self.laid_down else units, self.taken_back)
        begun = self.extracted[0][1] if self.extracted else found
        self.extracted.append((units, found if _users(begun) <= _users(found) else begun))
        return self.extracted[-1][1]

    @property
    def unread(self) -> tuple[Reason, ...]:
        """What could not be read of what was stated, and why: each once."""
        names = dict.fromkeys(entries.unread for _, entries in self.extracted if entries.unread)
        return tuple(Reason(Why.UNREAD, {"name": name}) for name in names)

    def report(self, *steps: Step) -> Generator[Step, Any, None]:
        """The runner sends each step back with its time; one who does not care sends nothing."""
        for step in steps:
            timed = yield step
            self.steps.append(timed or step)

    def listening(self, asking: Generator[Need, Any, Any]) -> Generator[Need, Any, Any]:
        """Asks what `asking` asks, and remembers which embedder answered. Returns what it returns."""
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


def _users(entries: Ledger) -> set[str]:
    return {normal(entry.text) for entry in entries if entry.role is Role.USER and not is_seen(entry)}


def tried(
    strategy: Strategy, state: ContextState, kit: Kit, *, recovering: bool = False, fills_up: bool = False
) -> Asking:
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


def _filled(state: ContextState, attempt: Attempt, done: Attempt, kit: Kit) -> Asking:
    """The step with the best of what went, if that is as lawful and still at the goal; else the step as it was."""
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
    faults = broken(before, units, gave_way=attempt.touched)
    if faults:
        return unchanged(state, Reason(Why.LAW_BROKEN, {"why": faults[0]}))
    after = state.having(units)
    # What must stay leaves no room: a ledger of it may take what was gained for now.
    has_to = bool(attempt.gave_way) and not state.fits
    if after.estimated_tokens >= state.estimated_tokens and not (has_to or _lets_the_ledger_in(state, after)):
        return unchanged(state, Why.NOT_SMALLER)
    return replace(attempt, state=after)


def _lets_the_ledger_in(state: ContextState, after: ContextState) -> bool:
    """Whether what the user laid down takes all that was gained: a step before this one had left it no room."""
    gained = ledger_tokens(after) - ledger_tokens(state)
    return after.fits and gained > 0 and after.estimated_tokens - gained < state.estimated_tokens
