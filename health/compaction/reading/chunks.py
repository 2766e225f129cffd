"""A unit's content in chunks that can be kept or left out alone: a sentence, a list item, a record, a log line.

Chunks are slices of the original, so what is kept is verbatim. Prose is cut by `text.passages`; a long line
(JSON on one line, minified text) at the ends of its records, else at its commas, else at blanks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from health.compaction.reading.text import Passage as Chunk
from health.compaction.reading.text import passages

__all__ = ["Chunk", "blocks", "chunks"]

LONG = 320
RECORD = 120
_RECORD_END = re.compile(r"(?<=[}\]])\s*,\s*|(?<=\n)|(?<=[;；。])\s*")
_FIELD_END = re.compile(r",\s*(?=\")|[,;，；]\s*|\s+")


def chunks(content: str) -> list[Chunk]:
    """The chunks of a content, in order. Linear in its length."""
    if len(content) <= LONG:  # as most messages are: none of its passages is longer
        return list(passages(content))
    found: list[Chunk] = []
    for passage in passages(content):
        if passage.end - passage.start <= LONG:
            found.append(passage)
        else:
            found.extend(_cut(content, passage.start, passage.end))
    return found


def blocks(content: str) -> list[Chunk]:
    """The chunks of a result or of code, short lines taken together: a line like `else:` says nothing alone."""
    found: list[Chunk] = []
    for chunk in chunks(content):
        last = found[-1] if found else None
        if last and chunk.end - last.start <= RECORD:
            found[-1] = Chunk(last.start, chunk.end, content[last.start : chunk.end])
        else:
            found.append(chunk)
    return found


def _cut(content: str, start: int, end: int) -> Iterator[Chunk]:
    """Records, packed up to RECORD characters; one that is longer is cut at its fields."""
    for begin, stop in _packed(content, start, end, _RECORD_END):
        if stop - begin <= LONG:
            yield Chunk(begin, stop, content[begin:stop])
            continue
        for first, last in _packed(content, begin, stop, _FIELD_END):
            for at in range(first, last, LONG):  # a word without blanks: base64, a hash, a script without spaces
                yield Chunk(at, min(at + LONG, last), content[at : min(at + LONG, last)])


def _packed(content: str, start: int, end: int, cut: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    begin = last = start
    for match in cut.finditer(content, start, end):
        if match.start() - begin > RECORD and last > begin:
            yield begin, last
            begin = last
        last = match.end()
    if end - begin > RECORD and last > begin:
        yield begin, last
        begin = last
    if begin < end:
        yield begin, end
