"""Which results of tools a later one tells anew: the same call made again, or the same record in a new state.

    get_order order=A-1041              → status=packed                    told anew
    get_order order=A-1041              → status=shipped                   stands
    search    text=lamp page=1, page=2  → two pages                        both stand
    ship      order=B-2203              → order=B-2203 status=shipped      replaces an earlier record of B-2203

A record is an object of JSON that repeats what the call named, under the same key. It takes the place of an earlier
one that has no key beside its own, where no argument of the two calls differs. An error replaces nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from health.compaction.reading.importance import mentions_error
from health.compaction.reading.text import of_text
from health.compaction.terms.units import Role, Unit, once
from health.compaction.trimming.payload_json import parse

# What is longer is no record of one thing.
MOST_CHARS = 8_000
# A shorter value names nothing: a switch, a page.
LEAST_NAME = 3

Name = tuple[str, str]


class Answered(NamedTuple):
    """A result that tells of no error, with the call it answers."""

    id: str
    tool: str
    arguments: Mapping[str, str]
    record: Mapping[str, str]

    @property
    def names(self) -> list[Name]:
        """What the call named and the result repeats."""
        return [
            (key, value)
            for key, value in self.arguments.items()
            if len(value) >= LEAST_NAME and self.record.get(key) == value
        ]

    def is_told_anew(self, later: Answered) -> bool:
        agree = all(later.arguments.get(key, value) == value for key, value in self.arguments.items())
        return agree and self.record.keys() <= later.record.keys()


@once
def told_anew(units: Sequence[Unit]) -> frozenset[str]:
    """The ids of the results that a later one takes the place of."""
    gone: set[str] = set()
    calls: dict[tuple[str, tuple[Name, ...]], Answered] = {}
    records: dict[Name, Answered] = {}
    for one in _answered(units):
        call = one.tool, tuple(sorted(one.arguments.items()))
        if one.arguments:
            gone.update([calls[call].id] if call in calls else ())
            calls[call] = one
        for name in one.names:
            gone.update([records[name].id] if name in records and records[name].is_told_anew(one) else ())
            records[name] = one
    return frozenset(gone)


def _answered(units: Sequence[Unit]) -> Iterator[Answered]:
    asked = {(unit.round_id, call.id): call for unit in units for call in unit.calls}
    for unit in units:
        call = asked.get((unit.round_id, unit.answers or "")) if unit.role is Role.TOOL else None
        if call is not None and not unit.failed and not _tells_error(unit.content):
            yield Answered(unit.id, call.name, _object(call.arguments), _object(unit.content))


@of_text
def _tells_error(text: str) -> bool:
    return mentions_error(text[:MOST_CHARS])


@lru_cache(maxsize=1024)
def _object(text: str) -> Mapping[str, str]:
    """The keys and values of an object of JSON, as text; nothing, where it is none."""
    if len(text) > MOST_CHARS or text.lstrip()[:1] != "{":
        return {}
    try:
        found: Any = parse(text)
    except (ValueError, RecursionError):
        return {}
    return {key: str(value) for key, value in found.items()} if isinstance(found, dict) else {}
