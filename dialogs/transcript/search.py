"""Full-text search in a dialog's messages, by search words that are stored with them.

Words are split here, not by the database, so that both databases find the same: without case and accents, identifiers
in their parts, Chinese, Japanese and Korean in pairs of characters. A word of a query matches the beginning of a word.
All search words of the dialog are scanned: an index over all dialogs would find matches of all people first.

Also passages from the archive, for the agent (`recall`) and for programs (MCP): words find the messages, static vectors
choose the passages.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import compress, islice
from math import log
from operator import and_, itemgetter, or_
from typing import Any
from uuid import UUID

from django.db.models import BooleanField, ExpressionWrapper, Q, TextField, Value
from django.db.models.functions import Concat, Length

from dialogs.models import Dialog, Message, SearchText
from dialogs.transcript.reads.archived_messages import archived_ids
from health.compaction.reading import lexical
from health.compaction.reading.text import CJK, passages

# The most characters of a message that are indexed, and the most bytes of its index.
READ_CHARS = 1_000_000
KEPT_BYTES = 400_000
# All words of so few letters are kept, whatever they are: without its ligatures a letter may be eighteen.
SHORT_CHARS = KEPT_BYTES // 100
WORD_CHARS = 64
QUERY_WORDS = 32
SNIPPET_CHARS = 240
_ACCENTS = re.compile(r"[\u0300-\u036f]")
_WORD = re.compile(rf"(?P<cjk>[{CJK}]+)|[^\W_{CJK}]+")


@dataclass(frozen=True, kw_only=True)
class Hit:
    """`snippet` is the message's own text around the first word found. A smaller `rank` is a better match."""

    message: Message
    snippet: str
    rank: float


def index_words(*texts: str) -> str:
    """The search words of a message's texts: each once, in order."""
    text = "\n".join(texts)[:READ_CHARS]
    words = _cut(text, ends=True)
    return " ".join(dict.fromkeys(words) if len(text) <= SHORT_CHARS else _first(words))


def _first(words: Iterable[str]) -> dict[str, None]:
    """The first words, as many as the index keeps."""
    found: dict[str, None] = {}
    left = KEPT_BYTES
    for word in words:
        if word not in found:
            left -= len(word.encode()) + 1
            if left < 0:
                break
            found[word] = None
    return found


def _cut(text: str, *, ends: bool) -> Iterator[str]:
    """Pairs of CJK characters, and the last one alone, so that each character is the beginning of a word."""
    for word in _WORD.finditer(_plain(text)):
        run = word["cjk"]
        if run is None:
            yield word[0][:WORD_CHARS]
            continue
        yield from (run[at : at + 2] for at in range(len(run) - 1))
        if ends or len(run) == 1:
            yield run[-1]


def _plain(text: str) -> str:
    """Normalised: width, case and accents removed."""
    spread = unicodedata.normalize("NFKD", text).casefold()
    return unicodedata.normalize("NFKC", _ACCENTS.sub("", spread))


def query_words(text: str) -> list[str]:
    """The words that a query asks for, at most QUERY_WORDS. Operators and quotes are none."""
    return list(dict.fromkeys(_cut(text[:READ_CHARS], ends=False)))[:QUERY_WORDS]


def search(dialog_id: UUID, text: str, *, limit: int, removed_only: bool = False, any_word: bool = False) -> list[Hit]:
    """The best matches among the dialog's messages; `removed_only`: those that the model no longer sees whole.

    Every word must occur, or with `any_word` one of them.
    """
    words = query_words(text)
    ranks = found_ids(dialog_id, words, any_word=any_word)
    if removed_only and ranks:
        kept = archived_ids(dialog_id)
        ranks = {pk: rank for pk, rank in ranks.items() if pk in kept}
    best = list(ranks)[:limit]
    messages = Message.objects.select_related("course").in_bulk(best)
    return [Hit(message=messages[pk], snippet=snippet(messages[pk].content, words), rank=ranks[pk]) for pk in best]


def found_ids(dialog_id: UUID, words: Sequence[str], *, any_word: bool) -> dict[int, float]:
    """The rank of every message of the dialog that matches, the best first, of equals the newest."""
    if not words:
        return {}
    begins = [Q(spaced__contains=f" {word}") for word in words]
    rows = SearchText.objects.filter(message__dialog=dialog_id).alias(
        spaced=Concat(Value(" "), "words", output_field=TextField())
    )
    wanted = rows.filter(reduce(or_ if any_word else and_, begins)).order_by("-message__seq")
    has = (ExpressionWrapper(one, BooleanField()) for one in begins)
    ranks = _ranked(list(wanted.values_list("message_id", Length("words"), *has)))
    return dict(sorted(ranks.items(), key=itemgetter(1)))


def _ranked(found: Sequence[tuple[Any, ...]]) -> dict[int, float]:
    """Rank messages, each with its length and which words it has: rarer words count more, and shorter messages rank
    higher."""
    columns = list(zip(*found, strict=True))[2:]
    weights = [log(1 + len(found) / max(1, sum(column))) for column in columns]
    return {pk: -sum(compress(weights, has)) / (1 + log(1 + length)) for pk, length, *has in found}


def snippet(text: str, words: Collection[str]) -> str:
    """The text around the first place where one of the words stands, on one line."""
    at = min((place for word in words if (place := text.casefold().find(word)) >= 0), default=0)
    start = max(0, at - SNIPPET_CHARS // 3)
    piece = " ".join(text[start : start + SNIPPET_CHARS].split())
    return f"{'…' if start else ''}{piece}{'…' if start + SNIPPET_CHARS < len(text) else ''}"


# Messages that words find, passages that are weighed, and how many are quoted unless more are asked for.
MESSAGES, WEIGHED = 40, 2_000
QUOTED, MOST_QUOTED = 5, 10
QUOTED_FROM_CHARS = 200_000
PASSAGE_CHARS = 500
NOTHING = "Nothing in the archive has these words. Try others, or fewer."


@dataclass(frozen=True)
class ArchivePassage:
    message: Message
    text: str


def recalled(dialog: Dialog, query: str, *, limit: int = QUOTED) -> list[ArchivePassage]:
    """Passages of the archive, best first; none where no word of the query occurs there."""
    hits = search(dialog.pk, query, limit=MESSAGES, removed_only=True, any_word=True)
    found = list(islice((passage for hit in hits for passage in _passages(hit.message)), WEIGHED))
    return _best(found, query)[:limit] if found else []


def _passages(message: Message) -> Iterator[ArchivePassage]:
    """Short sentences joined, since one alone says little; long ones split."""
    held = ""
    for piece in passages(message.content[:QUOTED_FROM_CHARS]):
        for start in range(0, len(piece.text), PASSAGE_CHARS):
            part = piece.text[start : start + PASSAGE_CHARS]
            if held and len(held) + len(part) >= PASSAGE_CHARS:
                yield ArchivePassage(message, held)
                held = ""
            held = f"{held}\n{part}" if held else part
    if held:
        yield ArchivePassage(message, held)


def _best(found: list[ArchivePassage], query: str) -> list[ArchivePassage]:
    """The passages that are like the query, the most like first; all of them, as they were found, where none is."""
    rows = lexical.vectors([query, *(passage.text for passage in found)]).vectors
    likeness = rows[1:] @ rows[0]
    ranked = sorted(range(len(found)), key=lambda at: -float(likeness[at]))
    return [found[at] for at in ranked if likeness[at] > 0] or found
