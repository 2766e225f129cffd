"""A context in cuts: the pieces that a strategy keeps or drops whole.

Unlike `units.rounds` a cut is always a slice of the context, also where a message stands between a call and
its result: so whatever is put in a cut's place never lands inside a round.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from health.compaction.laws.invariants import protected_ids
from health.compaction.terms.units import Unit, once, total, turn_to_leave


class Cut(NamedTuple):
    """`protected`: at least one of its units is, so the whole stays as it is."""

    start: int
    units: tuple[Unit, ...]
    protected: bool

    @property
    def tokens(self) -> int:
        return total(self.units)

    @property
    def turn(self) -> int:
        return turn_to_leave(self.units)


def cuts(units: Sequence[Unit]) -> list[Cut]:
    """The units in cuts, in order. Linear: each unit is looked at twice."""
    return list(_cuts(units))


@once
def _cuts(units: Sequence[Unit]) -> tuple[Cut, ...]:
    protected = protected_ids(units)
    last: dict[str | None, int] = {unit.round_id: at for at, unit in enumerate(units) if unit.round_id}
    found: list[Cut] = []
    start = 0
    while start < len(units):
        piece = tuple(units[start : _end(units, start, last)])
        found.append(Cut(start, piece, not protected.isdisjoint([unit.id for unit in piece])))
        start += len(piece)
    return tuple(found)


def _end(units: Sequence[Unit], start: int, last: dict[str | None, int]) -> int:
    """Where the cut that begins at `start` is over: no round begun in it goes on after it."""
    at, reach = start, start
    while at <= reach:
        reach = max(reach, last.get(units[at].round_id, at))
        at += 1
    return at


def ids_of(chosen: Iterable[Cut]) -> frozenset[str]:
    return frozenset(unit.id for cut in chosen for unit in cut.units)


def oldest(free: Iterable[Cut], tokens: int) -> Iterator[Cut]:
    """As many of the cuts as hold so many tokens, P3 before P2 before all else, of each the first ones first."""
    for cut in sorted(free, key=lambda cut: cut.turn):
        if tokens <= 0:
            return
        yield cut
        tokens -= cut.tokens


def floor_share(count: int, share: float) -> int:
    """`floor(count × share)`, undisturbed by binary fractions: 100 × 0.29 is 29."""
    return math.floor(round(count * share, 6))


def ceil_share(count: int, share: float) -> int:
    """`ceil(count × share)`, undisturbed by binary fractions: 100 × 0.07 is 7."""
    return math.ceil(round(count * share, 6))
