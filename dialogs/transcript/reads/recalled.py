"""Passages of what left a dialog's context, found by words: for its agent (`recall`) and for programs (MCP).

Words find the messages, vectors of words choose the passages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from dialogs.models import Dialog, Message
from dialogs.transcript.search import search
from health.compaction.reading import lexical
from health.compaction.reading.text import passages

# Messages that words find, passages that are weighed, and how many are quoted unless more are asked for.
MESSAGES, WEIGHED = 40, 2_000
QUOTED, MOST_QUOTED = 5, 10
READ_CHARS = 200_000
PASSAGE_CHARS = 500
NOTHING = "Nothing in the archive has these words. Try others, or fewer."


@dataclass(frozen=True)
class Passage:
    message: Message
    text: str


def recalled(dialog: Dialog, query: str, *, limit: int = QUOTED) -> list[Passage]:
    """The best first; none where no word of the query stands in the archive."""
    hits = search(dialog.pk, query, limit=MESSAGES, removed_only=True, any_word=True)
    found = list(islice((passage for hit in hits for passage in _passages(hit.message)), WEIGHED))
    return _best(found, query)[:limit] if found else []


def _passages(message: Message) -> Iterator[Passage]:
    """Sentences together, as far as they are short: one alone says little. Long ones in parts."""
    held = ""
    for piece in passages(message.content[:READ_CHARS]):
        for start in range(0, len(piece.text), PASSAGE_CHARS):
            part = piece.text[start : start + PASSAGE_CHARS]
            if held and len(held) + len(part) >= PASSAGE_CHARS:
                yield Passage(message, held)
                held = ""
            held = f"{held}\n{part}" if held else part
    if held:
        yield Passage(message, held)


def _best(found: list[Passage], query: str) -> list[Passage]:
    """The passages that are like the query, the most like first; all of them, as they were found, where none is."""
    rows = lexical.vectors([query, *(passage.text for passage in found)]).vectors
    likeness = rows[1:] @ rows[0]
    ranked = sorted(range(len(found)), key=lambda at: -float(likeness[at]))
    return [found[at] for at in ranked if likeness[at] > 0] or found
