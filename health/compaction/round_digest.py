"""An open round as one message: what stands for calls and results that do not fit even at their least.

They leave together, so nothing is torn. What is left of each is a line of a digest: its beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from health.compaction.reading.digest import GAP, Line, written
from health.compaction.terms.ports import Kit
from health.compaction.terms.units import Kind, Role, Unit, synthetic_id, tools_by_result, total
from health.compaction.trimming.clamp import clamped, level

Units = tuple[Unit, ...]

# The least that is left of a round, what the speaker of a line costs, and the least that is said in one.
DIGEST_TOKENS, SPEAKER_TOKENS, LINE_TOKENS = 30, 4, 8
HEAD_NOTE = GAP.rstrip()


def with_digests(units: Sequence[Unit], pieces: Sequence[Units], most: int, kit: Kit) -> Units:
    """Each of these rounds as a digest in its place, where that is smaller."""
    digests = {piece[0].id: _digest(piece, most, kit, is_open=piece[-1] == units[-1]) for piece in pieces}
    short = [piece for piece in pieces if total([digests[piece[0].id]]) < total(piece)]
    ids = {unit.id for piece in short for unit in piece}
    firsts = {piece[0].id for piece in short}
    return tuple(
        digests[unit.id] if unit.id in firsts else unit for unit in units if unit.id not in ids or unit.id in firsts
    )


def _digest(piece: Units, most: int, kit: Kit, *, is_open: bool) -> Unit:
    """The round in one message of so many tokens, if that can be. One that is open stays the one to be answered."""
    sources = tuple(dict.fromkeys(one for unit in piece for one in unit.sources))
    name = synthetic_id("digest", sources)
    empty = Unit(
        id=name,
        role=Role.USER,
        kind=Kind.SUMMARY,
        content=written(()),
        timestamp=piece[-1].timestamp,
        round_id=name if is_open else None,
        source_ids=sources,
    )
    lines = _lines(piece, most - total(kit.counted([empty])), kit)
    while True:
        (digest,) = kit.counted([empty.saying(written(lines))])
        if total([digest]) <= most or not lines:
            return digest
        del lines[-1]


def _lines(piece: Units, room: int, kit: Kit) -> list[Line]:
    """What was said, called and answered, evenly short; the first of it where there is no room for all."""
    tools = tools_by_result(piece)
    lines = [line for unit in piece for line in _lines_of(unit, tools.get(unit.id, ""))]
    lines = lines[: max(1, room // (SPEAKER_TOKENS + LINE_TOKENS))]
    sizes = [kit.tokens(line.text) for line in lines]
    most = level(sizes, room=max(0, room - SPEAKER_TOKENS * len(lines)))
    return [Line(line.role, _said(line.text, most, kit), line.tool) for line in lines]


def _lines_of(unit: Unit, tool: str) -> Iterator[Line]:
    if unit.content.strip():
        yield Line(unit.role, unit.content, tool)
    for call in unit.calls:
        yield Line(unit.role, f"{call.name} {call.arguments}", call.name)


def _said(text: str, most: int, kit: Kit) -> str:
    """The beginning of a text in at most so many tokens, with a mark of the gap."""
    return clamped(text, max_tokens=most, kit=kit, note=HEAD_NOTE, head_share=1.0) or GAP.strip()
