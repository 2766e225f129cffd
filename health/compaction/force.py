"""Which sentences of a context are no longer in force, and which may not be: `values`, asked of units.

Only what a person and the assistant said is heard: no frame of a client's, no prompt of ours, nothing compaction wrote.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from health.compaction.units import WRITTEN, Unit
from health.compaction.values import Said, heard, named_in_reply, without_force

Place = tuple[str, int, int]


class Force(NamedTuple):
    """Places are the id of a message, and the start and the end of a sentence in it.

    `gone` are no longer in force; of `followed` each is told only together with a later one about the same. `named` are
    values that say nothing of their subject ("the 12th, then"), each with the sentence of the reply that does.
    """

    gone: Mapping[str, tuple[tuple[int, int], ...]]
    followed: Mapping[Place, Place]
    named: Mapping[Place, Place]


@lru_cache(maxsize=8)
def in_force(units: tuple[Unit, ...]) -> Force:
    """What of the messages is no longer in force, and what may not be."""
    spoken = [unit for unit in units if not (unit.inserted or unit.framed) and unit.kind not in WRITTEN]
    said = [Said(unit.role, unit.content) for unit in spoken]
    book = heard(said)
    gone: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for one in without_force(said, book):
        gone[spoken[one.message].id].append((one.start, one.end))
    followed = {
        (spoken[old.message].id, old.start, old.end): (spoken[new.message].id, new.start, new.end)
        for old, new in book.followed.items()
        if old not in book.gone
    }
    named = {
        (spoken[at].id, start, end): (spoken[at + 1].id, reply.start, reply.end)
        for (at, start, end), reply in named_in_reply(said, book)
    }
    return Force({name: tuple(places) for name, places in gone.items()}, followed, named)
