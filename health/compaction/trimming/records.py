"""Which results of tools a later one tells anew: the same call made again, or the same record in a new state.

    get_order order=A-1041              → status=packed                    told anew
    get_order order=A-1041              → status=shipped                   stands
    search    text=lamp page=1, page=2  → two pages                        both stand
    ship      order=B-2203              → order=B-2203 status=shipped      replaces an earlier record of B-2203
    list                                → id=C-71 open; id=C-72 open       the row of C-71 is told anew
    close     ticket=C-71               → ticket: id=C-71 closed           stands
    build                               → build=1207 failed                told anew
    build                               → build=1207 passed                stands

A record is an object of JSON, wherever it stands in a result, that repeats what the call named, or that begins with
its id. It takes the place of an earlier one that has no key beside its own, where no argument of the two calls differs;
where it has fewer keys and none of its own, what it tells otherwise leaves the earlier one. Of calls that name nothing
the records that begin alike are compared.
What several records of one result have in common names none of them. An error replaces nothing.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Final, NamedTuple

from health.compaction.reading.importance import mentions_error
from health.compaction.reading.text import CJK, of_text, remembered
from health.compaction.terms.units import Role, Unit, once
from health.compaction.trimming.payload_json import parse, written

# What is longer is no record of one thing.
MOST_CHARS = 8_000
# A shorter value names nothing: a switch, a page.
NAMES = re.compile(rf"...|[A-Za-z]\d|[{CJK}]{{2}}", re.DOTALL)
SWITCHES = ("True", "False")
# Of the records that have a name, so many of the newest are compared.
MOST_COMPARED = 4
# What the first key of a record is called, where it tells which one it is.
IDENTIFIES = re.compile(r"(?:^|_)id$|[a-z]Id$|号$", re.ASCII)
# What stands in the place of a record that is left out.
GONE: Final = object()

Name = tuple[str, str]
Record = Mapping[str, str]
# Keys of records, these by their numbers in the result.
Rows = Mapping[int, Collection[str]]


class Superseded(NamedTuple):
    """The ids of the results that a later one takes the place of; of others, which keys of which records it tells."""

    results: frozenset[str]
    rows: Mapping[str, Rows]


class ToolAnswer(NamedTuple):
    """A result that tells of no error, with the call it answers."""

    id: str
    tool: str
    arguments: Record
    records: Sequence[Record]

    def names_of(self, record: Record) -> list[Name]:
        """What the call named and the record repeats, and the id that the record begins with."""
        named = set(self.arguments.values())
        first = next(iter(record), "")
        return [
            (key, value)
            for key, value in record.items()
            if NAMES.search(value) and (value in named or (key == first and IDENTIFIES.search(key)))
        ]

    def begins_with(self) -> list[Name]:
        """What names the record of a call that named nothing: its tool, and what it begins with."""
        first = next(iter(self.records[0].items()), None) if self.records and not self.arguments else None
        return [(f"{self.tool} {first[0]}", first[1])] if first else []

    def agrees(self, later: ToolAnswer) -> bool:
        return all(later.arguments.get(key, value) == value for key, value in self.arguments.items())


@once
def superseded(units: Sequence[Unit]) -> Superseded:
    """Which results, and which records of results, are no longer the newest that was told."""
    whole: set[str] = set()
    rows: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    calls: dict[tuple[str, tuple[Name, ...]], ToolAnswer] = {}
    known: dict[Name, deque[tuple[ToolAnswer, int]]] = defaultdict(lambda: deque(maxlen=MOST_COMPARED))
    for one in _tool_answers(units):
        call = one.tool, tuple(sorted(one.arguments.items()))
        if one.arguments:
            whole.update([calls[call].id] if call in calls else ())
            calls[call] = one
        for old, number, keys in _replaced(one, known):
            rows[old.id][number].update(keys)
            whole.update([old.id] if not number and rows[old.id][0] == old.records[0].keys() else ())
        _learn(one, known)
    return Superseded(frozenset(whole), {name: found for name, found in rows.items() if name not in whole})


def _replaced(
    one: ToolAnswer, known: Mapping[Name, Collection[tuple[ToolAnswer, int]]]
) -> Iterator[tuple[ToolAnswer, int, Collection[str]]]:
    """The records that one of this result takes the place of, with those of their keys that it tells anew."""
    for number, record in enumerate(one.records):
        for name in one.names_of(record) + (one.begins_with() if not number else []):
            for old, place in known.get(name, ()):
                if old.agrees(one) and (keys := _superseded_keys(record, old.records[place], name, one)):
                    yield old, place, keys


def _superseded_keys(new: Record, old: Record, name: Name, by: ToolAnswer) -> Collection[str]:
    """All keys where it says all that the older says: of what the call named itself, else with another value that is no
    id. Those with another value, where it says nothing else, switches aside."""
    other = [key for key, value in old.items() if new.get(key, value) != value]
    is_changed = bool(other) and not any(map(IDENTIFIES.search, other))
    if old.keys() <= new.keys():
        return old.keys() if is_changed or by.arguments.get(name[0]) == name[1] else ()
    own = [key for key in new.keys() - old.keys() if new[key] not in SWITCHES]
    return other if is_changed and not own and all(new[key] for key in other) else ()


def _learn(one: ToolAnswer, known: Mapping[Name, deque[tuple[ToolAnswer, int]]]) -> None:
    """Every pair of a record may name it, unless others of the result have it too."""
    often = Counter(pair for record in one.records for pair in record.items())
    for number, record in enumerate(one.records):
        for pair in record.items():
            if often[pair] == 1 and NAMES.search(pair[1]):
                known[pair].append((one, number))
    for name in one.begins_with():
        known[name].append((one, 0))


def _tool_answers(units: Sequence[Unit]) -> Iterator[ToolAnswer]:
    asked = {(unit.round_id, call.id): call for unit in units for call in unit.calls}
    for unit in units:
        call = asked.get((unit.round_id, unit.answers or "")) if unit.role is Role.TOOL else None
        if call is not None and not unit.failed and not _tells_error(unit.content):
            yield ToolAnswer(unit.id, call.name, _arguments(call.arguments), _records(unit.content))


@of_text
def _tells_error(text: str) -> bool:
    return mentions_error(text[:MOST_CHARS])


def _parsed(text: str) -> Any:
    """The value that JSON tells; None, where it is none or longer than records are."""
    if len(text) > MOST_CHARS or text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return parse(text)
    except (ValueError, RecursionError):
        return None


@remembered(1024)
def _arguments(text: str) -> Record:
    found = _parsed(text)
    return {key: str(value) for key, value in found.items()} if isinstance(found, dict) else {}


@remembered(1024)
def _records(text: str) -> Sequence[Record]:
    """What stands in each object and list, the outermost first; of a list nothing, and "" for what is nested."""
    return tuple(map(_record, _nested(_parsed(text))))


def _record(value: Any) -> Record:
    if not isinstance(value, dict):
        return {}
    return {key: "" if isinstance(one, dict | list) else str(one) for key, one in value.items()}


def _nested(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        yield value
        for one in value.values() if isinstance(value, dict) else value:
            yield from _nested(one)


def without_records(text: str, rows: Rows) -> str:
    """JSON without these keys of its records, and without what held nothing else."""
    if not rows:
        return text
    left = _without(parse(text), rows, count())
    return "" if left is GONE else written(left)


def _without(value: Any, rows: Rows, number: Iterator[int]) -> Any:
    if not isinstance(value, dict | list):
        return value
    over = rows.get(next(number), ())
    pairs = list(value.items() if isinstance(value, dict) else enumerate(value))
    left = [(key, _without(part, rows, number)) for key, part in pairs]
    kept = [(key, part) for key, part in left if part is not GONE and key not in over]
    if pairs and not kept:
        return GONE
    return dict(kept) if isinstance(value, dict) else [part for _, part in kept]
