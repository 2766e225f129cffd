"""An open round as one message: what stands for calls and results that do not fit even at their least.

They leave together, so nothing is torn. What is left of each is a line of a digest: its first sentences, lines or rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from health.compaction.reading.digest import GAP, Line, written
from health.compaction.reading.text import passages
from health.compaction.terms.ports import Kit
from health.compaction.terms.units import Kind, Unit, tools_by_result, total, written_for
from health.compaction.trimming.clamp import clamped, level
from health.compaction.trimming.json_rows import in_rows

Units = tuple[Unit, ...]

# The least that is left of a round, what the speaker of a line costs, the least that is said in one, and a gap.
DIGEST_TOKENS, SPEAKER_TOKENS, LINE_TOKENS, GAP_TOKENS = 30, 4, 8, 3
# With so many a line is cut where no sentence, line or row of it fits.
MUCH_TOKENS = 60
HEAD_NOTE = GAP.rstrip()
OPENING = (":", "：")


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
    empty = written_for(piece, Kind.SUMMARY, "digest", written(()))
    empty = replace(empty, round_id=empty.id) if is_open else empty
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
    return _shortened_lines(lines[: max(1, room // (SPEAKER_TOKENS + LINE_TOKENS))], room, kit)


def _shortened_lines(lines: Sequence[Line], room: int, kit: Kit) -> list[Line]:
    """The beginnings of the lines; the room of a text of which nothing would be left is for the others."""
    heads = _heads(lines, max(0, room - SPEAKER_TOKENS * len(lines)), kit)
    telling = [line for line, head in zip(lines, heads, strict=True) if line.tool or head != GAP.strip()]
    if 0 < len(telling) < len(lines):
        return _shortened_lines(telling, room, kit)
    return [Line(line.role, head, line.tool) for line, head in zip(lines, heads, strict=True)]


def _heads(lines: Sequence[Line], room: int, kit: Kit) -> list[str]:
    """The beginnings of the lines in so many tokens. What one has no use for, the others have."""
    left, found = dict(enumerate(lines)), dict[int, str]()
    while left:
        most = level(kit.counter.count([line.text for line in left.values()]), room=room)
        heads = {at: _head(line, most, kit) for at, line in left.items()}
        whole = [at for at, line in left.items() if heads[at] == line.text]
        settled = whole or [at for at, line in left.items() if heads[at] == _name_of(line)][-1:] or [*heads]
        found |= {at: heads[at] for at in settled}
        room -= sum(kit.counter.count([heads[at] for at in settled]))
        left = {at: line for at, line in left.items() if at not in found}
    return [found[at] for at in range(len(lines))]


def _head(line: Line, most: int, kit: Kit) -> str:
    """As it is, or in rows, if that fits in so many tokens; else its first whole sentences, lines or rows."""
    forms = (line.text, _rows_of(line)) if line.tool else (line.text,)
    fitting = (text for text in forms if kit.tokens(text) <= most)
    whole = next(fitting, None) or _beginning(forms[-1], most - GAP_TOKENS, kit)
    return whole or _cut(line, most, kit) or _name_of(line)


def _cut(line: Line, most: int, kit: Kit) -> str:
    """The beginning of one that is a single long line, where there is room for much of it."""
    return clamped(line.text, max_tokens=most, kit=kit, note=HEAD_NOTE, head_share=1.0) if most >= MUCH_TOKENS else ""


def _name_of(line: Line) -> str:
    """What is left where not even one sentence, line or row fits."""
    return f"{line.tool}{HEAD_NOTE}" if line.is_call else GAP.strip()


def _rows_of(line: Line) -> str:
    called = f"{line.tool} " if line.is_call else ""
    return called + in_rows(line.text.removeprefix(called))


def _beginning(text: str, most: int, kit: Kit) -> str:
    """The first passages that fit, with a mark of the gap; nothing, where none does.

    What only opens the next is none.
    """
    pieces, end = passages(text)[: max(0, most)], 0
    for piece, size in zip(pieces, kit.counter.count([one.text for one in pieces]), strict=True):
        most -= size
        if most < 0:
            break
        end = end if piece.text.endswith(OPENING) else piece.end
    return f"{text[:end]}{HEAD_NOTE}" if end else ""


def _lines_of(unit: Unit, tool: str) -> Iterator[Line]:
    if unit.content.strip():
        yield Line(unit.role, unit.content, tool)
    for call in unit.calls:
        yield Line(unit.role, f"{call.name} {call.arguments}", call.name)
