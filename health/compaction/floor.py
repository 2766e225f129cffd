"""What no compaction can remove, and who is to blame when that alone is too much: a diagnosis instead of a loop.

The floor is every cut with something protected in it, and what is sent besides units. Only texts that are not
themselves protected, and results of the open round, can give way, as a last resort: each to its head and tail.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from health.compaction.clamp import shortened
from health.compaction.cuts import cuts
from health.compaction.handover import is_handover
from health.compaction.invariants import open_round, protected_ids
from health.compaction.ports import Kit
from health.compaction.units import INSTRUCTING, ContextState, Priority, Role, Unit, total
from health.compaction.weave import ledger_beside

NAMED = 3

P1 = "P1"
PINNED = "pinned"
SYSTEM = "system prompt"
OVERHEAD = "tool schemas and other overhead"
OPEN = "open round"
WORDS = "user's words"
HELD = "round of a protected message"
ADVICE: Mapping[str, str] = {
    P1: "lower the priority of some P1 messages",
    PINNED: "unpin messages",
    SYSTEM: "shorten the system prompt",
    OVERHEAD: "offer fewer tools",
    OPEN: "ask the tools for less",
    WORDS: "give a long message as a file",
    HELD: "unpin messages of long rounds",
}


@dataclass(frozen=True, kw_only=True)
class Share:
    """One contributor to the floor; `why` it must stay is a key of ADVICE."""

    why: str
    tokens: int
    unit_id: str = ""

    def __str__(self) -> str:
        name = f"{self.why} ({self.unit_id})" if self.unit_id else self.why
        return f"{name} ≈{self.tokens:,} tokens"


@dataclass(frozen=True, kw_only=True)
class Floor:
    """The fewest tokens that a state can come to, and what they are made of, the largest first."""

    tokens: int
    shares: tuple[Share, ...]


def standing(units: Sequence[Unit]) -> tuple[Unit, ...]:
    """What stays in every case: the cuts with something protected in them, whole; but a handover can be retold.

    Where nothing is protected the last cut stays: a context of nothing helps nobody.
    """
    all_cuts = cuts(units)
    kept = [cut for cut in all_cuts if cut.protected and not is_handover(cut.units[0])] or all_cuts[-1:]
    return tuple(unit for cut in kept for unit in cut.units)


def can_give_way(units: Sequence[Unit]) -> frozenset[str]:
    """Of what stays, the texts that may be shortened when nothing else helps."""
    marked = {unit.id for unit in units if unit.pinned or unit.priority is Priority.P1}
    open_results = {unit.id for unit in open_round(units) if unit.role is Role.TOOL}
    return frozenset({unit.id for unit in units} - protected_ids(units) | (open_results - marked))


def is_too_much(state: ContextState, kit: Kit) -> bool:
    """Whether what must stay is over the limit with the ledger beside it, as long as nothing of it gives way."""
    kept = standing(state.units)
    return state.overhead_tokens + total(kept) + ledger_beside(kept, state, kit) > state.limit


def floor_of(state: ContextState, kit: Kit) -> Floor:
    gives_way, open_ids = can_give_way(state.units), {unit.id for unit in open_round(state.units)}
    shares = [Share(why=OVERHEAD, tokens=state.overhead_tokens)]
    for unit in standing(state.units):
        least = shortened(unit, max_tokens=0, kit=kit) if unit.id in gives_way else unit
        shares.append(Share(why=_why(unit, is_open=unit.id in open_ids), tokens=total([least]), unit_id=unit.id))
    ordered = tuple(sorted(shares, key=lambda share: -share.tokens))
    return Floor(tokens=sum(share.tokens for share in ordered), shares=ordered)


def diagnosis(floor: Floor, *, limit: int) -> str:
    """Who is to blame, and what a person can do about it."""
    first = sum(share.tokens for share in floor.shares if share.why == P1)
    culprit, needed = ("P1 alone", first) if first > limit else ("What must stay", floor.tokens)
    largest = [share for share in floor.shares[:NAMED] if share.tokens]
    ways = dict.fromkeys(ADVICE[share.why] for share in largest)
    return (
        f"{culprit} needs ≈{needed:,} tokens, the limit is {limit:,}. The largest: {', '.join(map(str, largest))}. "
        f"To go on, {', or '.join(ways)}, or choose a larger limit or model."
    )


def _why(unit: Unit, *, is_open: bool) -> str:
    if unit.role in INSTRUCTING:
        return SYSTEM
    if unit.priority is Priority.P1:
        return P1
    if unit.pinned:
        return PINNED
    if is_open:
        return OPEN
    return WORDS if unit.role is Role.USER else HELD
