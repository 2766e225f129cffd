"""`counter_for(model)`: who estimates the tokens of a model's texts. It always answers, and says how far to trust it.

The model's own vocabulary; where that is missing GPT's (approximate); where that is missing too, characters
(rough). Nothing is ever downloaded. Estimates drive compaction; the level comes from reported usage alone.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain

from health.compaction.terms.ports import Grade
from health.tokens.encoders import Sizes
from health.tokens.families import UNKNOWN, Family, Vocabulary, family_of
from health.tokens.memory import Memory
from health.tokens.vocabularies import VocabularyMissing, opened

logger = logging.getLogger(__name__)
# The name of a counter that asks the model's own server.
SERVER = "server"


@dataclass(frozen=True, kw_only=True)
class RememberingCounter:
    """A `ports.Counter` over any way of measuring. `name` is the vocabulary's."""

    name: str
    grade: Grade
    per_message: int
    sizes: Sizes = field(repr=False)
    memory: Memory = field(repr=False, compare=False, default_factory=Memory)

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text alone; only what is new is measured, in one batch. Never raises."""
        found = self.memory.recall(texts)
        if None not in found:
            return [size for size in found if size is not None]
        new = list(dict.fromkeys(text for text, size in zip(texts, found, strict=True) if size is None))
        measured = dict(zip(new, self._measured(new), strict=True))
        self.memory.keep(measured.items())
        return [measured[text] if size is None else size for text, size in zip(texts, found, strict=True)]

    def _measured(self, texts: Sequence[str]) -> list[int]:
        try:
            return _in_pieces(texts, self.sizes)
        except Exception:
            logger.exception("%s could not count: characters are taken instead", self.name)
            return _rough_sizes(texts)


def _in_pieces(texts: Sequence[str], sizes: Sizes) -> list[int]:
    """One batch of distinct pieces: the same one, as in a megabyte of one letter, is measured once."""
    parts = {text: tuple(pieces(text)) for text in texts if len(text) > PIECE}
    if not parts:
        return sizes(texts)
    distinct = list(dict.fromkeys(chain((text for text in texts if text not in parts), *parts.values())))
    of = dict(zip(distinct, sizes(distinct), strict=True))
    return [sum(of[part] for part in parts[text]) if text in parts else of[text] for text in texts]


def _rough_sizes(texts: Sequence[str]) -> list[int]:
    return [rough(text) for text in texts]


ROUGH = RememberingCounter(name="characters", grade=Grade.ROUGH, per_message=4, sizes=_rough_sizes)


def counter_for(model: str) -> RememberingCounter:
    """The counter of a model, by its name. Never raises; the same object for every model of one family."""
    return _counter(family_of(model))


@cache
def _counter(family: Family) -> RememberingCounter:
    for vocabulary, grade in ((family.vocabulary, family.grade), (UNKNOWN.vocabulary, Grade.APPROXIMATE)):
        if (sizes := _sizes(vocabulary)) is not None:
            return RememberingCounter(
                name=vocabulary.value,
                grade=grade,
                per_message=family.per_message,
                sizes=sizes,
                memory=_memory(vocabulary),
            )
    return ROUGH


@cache
def _sizes(vocabulary: Vocabulary) -> Sizes | None:
    try:
        return opened(vocabulary)
    except VocabularyMissing as missing:
        logger.warning("no vocabulary %s: estimates are less exact", missing)
        return None


@cache
def _memory(vocabulary: Vocabulary) -> Memory:
    """One for each vocabulary, whichever families count with it."""
    return Memory()


def count_text(text: str, model: str) -> int:
    """Tokens of a text alone, without a message's frame."""
    return counter_for(model).count([text])[0]


# --- Very long texts in pieces, so that no text is slower per character than another ---
PIECE = 32_768  # characters
_REACH = 1_000
# No vocabulary here has a token that goes on from a word into the blank before the next one.
_BEFORE_A_WORD = re.compile(r"(?<=\S) (?=[^\W\d_])")


def pieces(text: str) -> Iterator[str]:
    """The text in order, in pieces of at most `PIECE` characters."""
    start = 0
    while len(text) - start > PIECE:
        end = _border(text, start + PIECE)
        yield text[start:end]
        start = end
    yield text[start:]


def _border(text: str, end: int) -> int:
    """The last cut before a word near `end`, else `end` itself."""
    near = _BEFORE_A_WORD.finditer(text, end - _REACH, end)
    return max((found.start() for found in near), default=end)


# By a character's bytes in UTF-8, which follow its script: Latin; Greek to Arabic; Indic, Chinese to Korean; emoji.
_LETTER, _OTHER_ASCII, _TWO_BYTES, _THREE_BYTES, _FOUR_BYTES = 0.23, 0.75, 0.55, 1.3, 2.5
_LETTERS = b" abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NOT_TWO, _NOT_THREE, _NOT_FOUR = (
    bytes(set(range(256)) - set(lead)) for lead in (range(0xC0, 0xE0), range(0xE0, 0xF0), range(0xF0, 0x100))
)


def rough(text: str) -> int:
    """About how many tokens a text is, whatever the model. Linear in its length."""
    raw = text.encode(errors="replace")
    ascii_only = raw.translate(None, bytes(range(0x80, 0x100)))
    others = len(ascii_only.translate(None, _LETTERS))
    return math.ceil(
        _LETTER * (len(ascii_only) - others)
        + _OTHER_ASCII * others
        + _TWO_BYTES * len(raw.translate(None, _NOT_TWO))
        + _THREE_BYTES * len(raw.translate(None, _NOT_THREE))
        + _FOUR_BYTES * len(raw.translate(None, _NOT_FOUR))
    )
