"""The messages that passages are chosen from, each cut into chunks: units, and the lines of earlier digests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from health.compaction.chunks import Chunk, blocks, chunks
from health.compaction.digest import GAPS, is_digest, is_notice, read_back
from health.compaction.force import in_force
from health.compaction.kinds import kind_of
from health.compaction.records import told_anew
from health.compaction.rows import in_rows
from health.compaction.units import Kind, Role, Unit, tools_by_result

_PRONOUN = re.compile(r"(?:it|its|that|this|they|them|he|she|those|these|then)\b|[它他她那这此]", re.IGNORECASE)
_SHORT_REPLY = 160
SPOKEN = frozenset({Role.USER, Role.ASSISTANT})
# Nobody types more than this at once; what is pasted is weighed as a result is.
_LONGEST_TYPED = 3000
_OUTPUT = re.compile(r"\s*(?:<[a-z_-]+>|\[?(?:output|stdout|stderr|observation|result|returncode)\b)", re.IGNORECASE)


class Source(NamedTuple):
    """One message: `unit_at` is its unit's place in the state. `voice` is the role that it is weighed as.

    Programs that have no tool roles put a command's output into a user message: it is weighed as a result.
    """

    unit_at: int
    role: Role
    text: str
    chunks: Sequence[Chunk]
    tool: str = ""
    voice: Role = Role.USER
    call_id: tuple[str, str] = ("", "")

    @property
    def is_call(self) -> bool:
        return self.role is Role.ASSISTANT and bool(self.tool)


@dataclass(frozen=True, kw_only=True)
class Frame:
    """What a choice stands in: units kept as they are, results that yield in place, and tokens for the choice."""

    kept: frozenset[str]
    yielding: frozenset[str]
    room: int


def sources_of(units: Sequence[Unit], frame: Frame) -> list[Source]:
    """Every message that is not kept as it is, in order; without what is no longer in force, and what is said again."""
    tools, old = tools_by_result(units), told_anew(tuple(units))
    over = {(unit.round_id or "", unit.answers) for unit in units if unit.id in old}
    stale = in_force(tuple(units)).gone
    found = [
        _in_force(source, stale.get(unit.id, ()))
        for at, unit in enumerate(units)
        if unit.id not in frame.kept | old and not (is_notice(unit) or unit.inserted)  # prompts of ours are over
        for source in _sources(at, unit, tools.get(unit.id, ""))
        if source.call_id not in over
    ]
    again = _said_again(found, [unit.content for unit in units if unit.id in frame.kept])
    return [source for at, source in enumerate(found) if source.chunks and at not in again]


def _said_again(sources: Sequence[Source], standing: Iterable[str]) -> set[int]:
    """The messages whose text stands in any case, or comes again further down: an exact repeat is never kept twice."""
    seen = {_plain(text) for text in standing}
    again: set[int] = set()
    for at in reversed(range(len(sources))):
        if sources[at].role in SPOKEN and not sources[at].tool:
            text = _plain(sources[at].text)
            again.update([at] if text in seen else ())
            seen.add(text)
    return again


def _plain(text: str) -> str:
    return " ".join(text.split())


def _in_force(source: Source, stale: Sequence[tuple[int, int]]) -> Source:
    """Without the sentences that a later one took the place of."""
    if not stale or source.is_call:
        return source
    chunks = [one for one in source.chunks if not any(one.start < end and start < one.end for start, end in stale)]
    return source._replace(chunks=chunks)


def _sources(at: int, unit: Unit, tool: str) -> Iterator[Source]:
    if is_digest(unit):
        yield from _read_back(at, unit)
        return
    if unit.content.strip():
        text = in_rows(unit.content) if unit.role is Role.TOOL else unit.content
        source = _source(at, unit.role, text, tool, unit.kind, (unit.round_id or "", unit.answers or ""))
        # No person typed what a client puts before every conversation.
        yield source._replace(voice=Role.ASSISTANT) if unit.framed else source
    for call in unit.calls:
        text = f"{call.name} {in_rows(call.arguments)}"
        yield _source(at, unit.role, text, call.name, Kind.OTHER, (unit.round_id or "", call.id))


def _read_back(at: int, unit: Unit) -> Iterator[Source]:
    """The lines of an earlier digest. A result stands below its call."""
    number = 0
    for line in read_back(unit.content):
        role = Role(line.role)
        number += line.is_call
        yield _source(at, role, line.text, line.tool, kind_of(line.text, role), (unit.id, str(number)))


def is_lines(unit: Unit) -> bool:
    """Does its choice stand as lines of a digest? Otherwise the message is shortened in place."""
    return unit.round_id is not None or is_digest(unit)


def _source(at: int, role: Role, text: str, tool: str, kind: Kind, call_id: tuple[str, str]) -> Source:
    voice = Role.TOOL if role is Role.USER and _is_output(text, kind) else role
    return Source(at, role, text, _pieces(text, voice), tool, voice, call_id)


def _is_output(text: str, kind: Kind) -> bool:
    return len(text) > _LONGEST_TYPED or kind in (Kind.LOG, Kind.CODE) or bool(_OUTPUT.match(text))


def _pieces(text: str, role: Role) -> Sequence[Chunk]:
    """The chunks of a text. None reaches over a gap that an earlier choice left."""
    cut = blocks if role is Role.TOOL else chunks
    if "[…]" not in text:
        return cut(text)
    found: list[Chunk] = []
    at = 0
    for gap in [*GAPS.finditer(text), None]:
        piece = text[at : gap.start() if gap else len(text)]
        found.extend(Chunk(at + chunk.start, at + chunk.end, chunk.text) for chunk in cut(piece))
        at = gap.end() if gap else at
    return found


def begins(
    sources: Sequence[Source], places: Sequence[tuple[int, int]], units: Sequence[Unit]
) -> list[tuple[str, int] | None]:
    """For each chunk the id of its message and the character it begins at; none for calls, nobody said them."""
    return [
        None if sources[at].is_call else (units[sources[at].unit_at].id, sources[at].chunks[number].start)
        for at, number in places
    ]


def leaning(
    sources: Sequence[Source], places: Sequence[tuple[int, int]], units: Sequence[Unit]
) -> list[tuple[int, ...]]:
    """For each chunk those it makes little sense without: a reply's question, what "It moved" is said of, a call.

    A value leans on the newest that is told of the same subject: without that it may be an outdated one. One that
    names no subject leans on the reply that does.
    """
    first = {sources[at].call_id: one for one, (at, number) in enumerate(places) if not number and sources[at].is_call}
    starts, beside = begins(sources, places, units), in_force(tuple(units)).beside
    at_start = {start: one for one, start in enumerate(starts) if start}
    told = [
        [at_start[other] for other in beside.get(start, ()) if other in at_start] if start else [] for start in starts
    ]
    return [
        tuple(dict.fromkeys([*_leans_on(sources, at, number, one, first), *told[one]]))
        for one, (at, number) in enumerate(places)
    ]


def _leans_on(
    sources: Sequence[Source], at: int, number: int, one: int, first: Mapping[tuple[str, str], int]
) -> Iterator[int]:
    source = sources[at]
    if source.role is Role.TOOL:
        yield from [first[source.call_id]] if source.call_id in first else []
    elif source.is_call:
        yield from [one - number] if number else []
    elif one and _leans(sources, at, number):
        yield one - 1


def _leans(sources: Sequence[Source], at: int, number: int) -> bool:
    source = sources[at]
    if source.voice is Role.TOOL:
        return False
    if _PRONOUN.match(source.chunks[number].text):
        return True
    if number or not at or len(source.text) > _SHORT_REPLY:
        return False
    asked = sources[at - 1]
    return asked.role is not source.role and asked.text.rstrip().endswith(("?", "？"))
