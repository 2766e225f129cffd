"""Puts the ledger in its place: where the first message left, in words that no longer stand elsewhere.

Strategies never see it, so none can paraphrase it: it is taken out before each and made anew after.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from health.compaction.reading import ledger
from health.compaction.reading.ledger_page import read
from health.compaction.terms.ports import Kit
from health.compaction.terms.pressure import tokens
from health.compaction.terms.units import INSTRUCTING, ContextState, Kind, Role, Unit, once, total


def without_ledger(state: ContextState) -> ContextState:
    """The state as a strategy sees it: the ledger counts, but is no unit."""
    tokens = ledger_tokens(state)
    if not tokens:
        return state
    beside = state.overhead_tokens + tokens
    return replace(state, units=_plain(state.units), overhead_tokens=beside, ledger_tokens=tokens)


def ledger_tokens(state: ContextState) -> int:
    return total(unit for unit in state.units if unit.kind is Kind.SUMMARY and ledger.is_ledger(unit))


def ledger_beside(kept: Sequence[Unit], state: ContextState, kit: Kit) -> int:
    """The tokens of the ledger that would be carried if these were all that stands."""
    budget = tokens(state.config.ledger_share, state.limit)
    unit = ledger.carry(kit.entries, standing=kept, budget_tokens=budget, kit=kit)
    return total(kit.counted([unit])) if unit else 0


def is_squeezed(state: ContextState, kit: Kit, *, only_rules: bool) -> bool:
    """Would a ledger with its full share of the limit hold more of what the user laid down and stands nowhere else?"""
    share, has = tokens(state.config.ledger_share, state.limit), ledger_tokens(state)
    if state.estimated_tokens - has + share <= state.limit:
        return False
    full = ledger.carry(kit.entries, standing=_plain(state.units), budget_tokens=share, kit=kit)
    pages = (unit for unit in state.units if ledger.is_ledger(unit)) if has else ()
    missing = _laid_down(filter(None, [full])) - _laid_down(pages)
    return any(kind is ledger.EntryKind.RULE or not only_rules for _, kind in missing)


def _laid_down(pages: Iterable[Unit]) -> set[tuple[str, ledger.EntryKind]]:
    return {(one.text, one.kind) for unit in pages for one in read(unit.content) if one.role is Role.USER}


def woven(before: ContextState, units: Iterable[Unit], kit: Kit) -> tuple[Unit, ...]:
    """The units with a ledger of what `kit.entries` say and they do not. It is never what breaks the limit."""
    after = _plain(kit.counted(units))
    share = tokens(before.config.ledger_share, before.limit)
    room = before.limit - before.overhead_tokens - total(after)
    budget = min(share, room) if room >= 0 else share
    unit = ledger.carry(kit.entries, standing=after, budget_tokens=budget, kit=kit)
    if unit is None:
        return after
    at, timestamp = _place(before.units, after)
    return (*after[:at], replace(unit, timestamp=timestamp), *after[at:])


@once
def _plain(units: Sequence[Unit]) -> tuple[Unit, ...]:
    return tuple([unit for unit in units if unit.kind is not Kind.SUMMARY or not ledger.is_ledger(unit)])


def _place(before: Sequence[Unit], after: Sequence[Unit]) -> tuple[int, float]:
    """Where in `after` the first message is missing that stood in `before`, and when that one was said.

    Never before a system prompt that opens the context, which an earlier ledger may do where the opening has left.
    """
    now = {unit.id: unit.content for unit in after}
    first = next((at for at, unit in enumerate(before) if now.get(unit.id) != unit.content), len(before))
    opening = next((at for at, unit in enumerate(after) if unit.role not in INSTRUCTING), len(after))
    at = max(first, opening)
    while 0 < at < len(after) and after[at].round_id and after[at - 1].round_id == after[at].round_id:
        at -= 1
    return at, before[min(first, len(before) - 1)].timestamp
