"""The last resort for texts that are too long alone: head and tail, and a note of what stood between.

JSON is never cut in its middle: it is trimmed further and further, and stays JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from health.compaction.reading.importance import is_ui_tool
from health.compaction.reading.text import CJK
from health.compaction.terms.ports import Kit
from health.compaction.terms.reasons import Reason
from health.compaction.terms.units import Unit, tools_by_result, total
from health.compaction.trimming.payload_json import written
from health.compaction.trimming.payloads import filled, is_json, trim

Shorten = Callable[[str, int], str]

NOTE = "\n[… {count:,} characters archived …]\n"
HEAD_SHARE = 0.6
# A text is never shortened below this: less would not tell the model what it was.
LEAST_TOKENS = 120
# Each try leaves less than the last one measured, so their number is bounded by the logarithm of the size.
SAFETY = 0.97
# So much of a head or a tail is given for whole lines or sentences, or else for whole words; of a short one, a
# sentence or a word.
NEAR, A_SENTENCE, A_WORD = 0.2, 240, 24
# What an earlier cut left is never cut itself, or its rest would read as words of whoever wrote the text.
_MARK = re.compile(r"\n?\[…(?: [^\[\]\n]{0,200} …)?\]\n?")
_COUNTED = re.compile(r"\n\[… ([\d,]{1,15}) characters (?:archived|left out here;)[^\[\]\n]{0,200} …\]\n")
_ENDS = (
    (re.compile(r"\n|(?<=[^\W\d][.!?])\s|(?<=[。！？])"), A_SENTENCE),
    (re.compile(r"\s"), A_WORD),
    (re.compile(rf"(?<=[{CJK}])|\b"), A_WORD),
)


def clamped(
    text: str,
    *,
    max_tokens: int,
    kit: Kit,
    tool: str = "",
    note: str = NOTE,
    head_share: float = HEAD_SHARE,
    said: str = "",
) -> str:
    """The text within so many tokens: as it is if it fits, and empty if not even the note fits.

    `tool` is the name of the tool whose result it is; `head_share` of what is kept is of the beginning. `said` is told
    beside the note.
    """
    tokens = kit.tokens(text)
    if tokens <= max_tokens:
        return text
    note = note.replace(" …]", f". {said} …]") if said else note
    ends: Shorten = partial(_ends, note=note, head_share=head_share)
    cut: Shorten = partial(_within_json, tool=tool, said=said) if is_json(text) else ends
    chars = int(len(text) * max_tokens / tokens)
    while chars > 0:
        piece = cut(text, chars)
        tokens = kit.tokens(piece)
        if tokens <= max_tokens:
            return piece
        chars = int(chars * max_tokens / tokens * SAFETY)
    alone = cut(text, 0)
    return alone if kit.tokens(alone) <= max_tokens else ""


def shortened(unit: Unit, *, max_tokens: int, kit: Kit, least: int = LEAST_TOKENS, **how: Any) -> Unit:
    """The unit, counted, of at most so many tokens as a whole; but its text keeps `least` in any case.

    `how` is as for `clamped`.
    """
    fixed = total([unit]) - kit.tokens(unit.content)
    content = clamped(unit.content, max_tokens=max(least, max_tokens - fixed), kit=kit, **how)
    (short,) = kit.counted([unit.saying(content)])
    return short


def evened(
    units: Sequence[Unit],
    *,
    may: Collection[str],
    excess: int,
    kit: Kit,
    said: Mapping[str, Reason] = MappingProxyType({}),
    **how: Any,
) -> tuple[Unit, ...]:
    """The units with `excess` tokens less, taken from the largest of those that `may` be shortened, if they can.

    `said` is what some of them say of it, by their ids; `how` is as for `shortened`.
    """
    sizes = [total([unit]) for unit in units if unit.id in may]
    most = level(sizes, room=sum(sizes) - excess)
    tools = tools_by_result(units)
    return tuple(
        shortened(unit, max_tokens=most, kit=kit, tool=tools.get(unit.id, ""), said=str(said.get(unit.id, "")), **how)
        if unit.id in may and total([unit]) > most
        else unit
        for unit in units
    )


def level(sizes: Sequence[int], *, room: int) -> int:
    """The size at which to cut the largest, so that all together fill the room."""
    for number, size in enumerate(sorted(sizes)):
        share = room // (len(sizes) - number)
        if size > share:
            return share
        room -= size
    return max(sizes, default=0)


def _within_json(text: str, chars: int, *, tool: str, said: str) -> str:
    short = trim(text, tool=tool, max_chars=chars) if is_ui_tool(tool) else filled(text, max_chars=chars)
    short = short if is_json(short) else written(NOTE.format(count=len(text)).strip())
    return f'{{"note": {written(said)}, "result": {short}}}' if said else short


def _ends(text: str, chars: int, *, note: str, head_share: float) -> str:
    head = int(chars * head_share)
    tail = len(text) - (chars - head)
    head, tail = _line_end(text, head), _line_start(text, tail)
    for mark in _MARK.finditer(text):
        head = mark.start() if mark.start() < head < mark.end() else head
        tail = mark.end() if mark.start() < tail < mark.end() else tail
    return f"{text[:head]}{note.format(count=_left_out(text[head:tail]))}{text[tail:]}"


def _left_out(piece: str) -> int:
    """How many characters go with this piece; those that an earlier note in it counts are gone already."""
    return len(piece) + sum(int(note[1].replace(",", "")) - len(note[0]) for note in _COUNTED.finditer(piece))


def _line_end(text: str, at: int) -> int:
    """The last end of a line or sentence before the place, or of a word, if that is near."""
    ends = (
        max((match.end() for match in end.finditer(text, max(0, at - _near(at, least)), at)), default=0)
        for end, least in _ENDS
    )
    return next(filter(None, ends), at)


def _line_start(text: str, at: int) -> int:
    """The first beginning of a line or sentence behind the place, or of a word, if that is near."""
    rest = len(text) - at
    starts = (end.search(text, at, at + _near(rest, least)) for end, least in _ENDS)
    return next((match.end() for match in starts if match), at)


def _near(chars: int, least: int) -> int:
    return max(least, int(chars * NEAR))
