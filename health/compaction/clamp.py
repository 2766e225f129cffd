"""The last resort for texts that are too long alone: head and tail, and a note of what stood between."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from health.compaction.ports import Kit
from health.compaction.units import Unit, total

NOTE = "\n[… {count:,} characters left out here; the full text is in the archive …]\n"
HEAD_SHARE = 0.6
# A text is never shortened below this: less would not tell the model what it was.
LEAST_TOKENS = 120
# Each try leaves less than the last one measured, so their number is bounded by the logarithm of the size.
SAFETY = 0.97


def clamped(text: str, *, max_tokens: int, kit: Kit, note: str = NOTE) -> str:
    """The text within so many tokens: as it is if it fits, and empty if not even the note fits."""
    tokens = kit.tokens(text)
    if tokens <= max_tokens:
        return text
    chars = int(len(text) * max_tokens / tokens)
    while chars > 0:
        piece = _ends(text, chars, note)
        tokens = kit.tokens(piece)
        if tokens <= max_tokens:
            return piece
        chars = int(chars * max_tokens / tokens * SAFETY)
    alone = _ends(text, 0, note)
    return alone if kit.tokens(alone) <= max_tokens else ""


def shortened(unit: Unit, *, max_tokens: int, kit: Kit) -> Unit:
    """The unit, counted, of at most so many tokens as a whole; but its text keeps LEAST_TOKENS in any case."""
    fixed = total([unit]) - kit.tokens(unit.content)
    content = clamped(unit.content, max_tokens=max(LEAST_TOKENS, max_tokens - fixed), kit=kit)
    (short,) = kit.counted([unit.saying(content)])
    return short


def evened(units: Sequence[Unit], *, may: Collection[str], excess: int, kit: Kit) -> tuple[Unit, ...]:
    """The units with `excess` tokens less, taken from the largest of those that `may` be shortened, if they can."""
    sizes = [total([unit]) for unit in units if unit.id in may]
    level = _level(sizes, room=sum(sizes) - excess)
    return tuple(
        shortened(unit, max_tokens=level, kit=kit) if unit.id in may and total([unit]) > level else unit
        for unit in units
    )


def _level(sizes: Sequence[int], *, room: int) -> int:
    """The size at which to cut the largest, so that all together fill the room."""
    for number, size in enumerate(sorted(sizes)):
        share = room // (len(sizes) - number)
        if size > share:
            return share
        room -= size
    return max(sizes, default=0)


def _ends(text: str, chars: int, note: str) -> str:
    head = int(chars * HEAD_SHARE)
    tail = len(text) - (chars - head)
    return f"{text[:head]}{note.format(count=tail - head)}{text[tail:]}"
