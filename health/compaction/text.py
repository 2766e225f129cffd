"""Text in pieces: passages (sentences, list items, lines) and words, English and Chinese alike.

A passage is a slice of the original, never a rewriting: what is chosen later is verbatim. Words are lower
case; a run of Chinese, Japanese or Korean is its overlapping pairs, as nothing else finds them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

CJK = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_FENCES = ("```", "~~~")
# A sentence ends after its mark and closing quotes; not after a digit's or initial's point.
# The mark comes first: a search then looks at nothing else.
_END = re.compile(
    r"[.!?…。！？；](?:(?<=[.!?…])[\"'”’)\]]*\s+(?=[\"'“‘(\[]*[A-Z0-9¿¡\"'“(])|(?<=[。！？；])[”’」』）]*)"
)
_LONGEST_ABBREVIATION = len("approx.")
_ABBREVIATED = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|No|vs|etc|e\.g|i\.e|approx|Fig|[A-Z]))\.$")
_WORD = re.compile(rf"[{CJK}]++|[^\W_{CJK}]++(?:[-_'][^\W_{CJK}]++)*+")
_ASCII_WORD = re.compile(r"[a-z0-9]++(?:[-_'][a-z0-9]++)*+")


class Passage(NamedTuple):
    """`text == source[start:end]`; `code` marks lines inside a fence."""

    start: int
    end: int
    text: str
    code: bool = False


# A run asks for the same text's passages up to three times: for the ledger, the choice, the losses. Ten megabytes.
REMEMBERED = 8192
TOO_LONG_TO_REMEMBER = 4_000


def passages(text: str) -> tuple[Passage, ...]:
    """The passages of a text in order. Blank lines and blanks between them belong to none."""
    return _remembered(text) if len(text) <= TOO_LONG_TO_REMEMBER else _split(text)


def _split(text: str) -> tuple[Passage, ...]:
    found: list[Passage] = []
    at, fenced = 0, False
    for line in text.splitlines(keepends=True):
        mark = line.lstrip().startswith(_FENCES)
        if fenced or mark:
            _add(found, text, at, at + len(line), code=True)
            fenced = fenced != mark
        else:
            _add_sentences(found, text, at, line)
        at += len(line)
    return tuple(found)


_remembered = lru_cache(maxsize=REMEMBERED)(_split)


def _add_sentences(found: list[Passage], text: str, at: int, line: str) -> None:
    start = 0
    for end in _END.finditer(line):
        if line[end.start()] == "." and _is_abbreviation(line, start, end.start() + 1):
            continue
        _add(found, text, at + start, at + end.end(), code=False)
        start = end.end()
    _add(found, text, at + start, at + len(line), code=False)


def _is_abbreviation(line: str, start: int, end: int) -> bool:
    return _ABBREVIATED.search(line, max(start, end - _LONGEST_ABBREVIATION), end) is not None


def _add(found: list[Passage], text: str, start: int, end: int, *, code: bool) -> None:
    piece = text[start:end].rstrip()
    bare = piece if code else piece.lstrip()
    if bare:
        begin = start + len(piece) - len(bare)
        found.append(Passage(begin, begin + len(bare), bare, code))


def one_of(phrases: Iterable[str]) -> str:
    """An expression for any of some phrases that begin with a letter each: of most words it looks at no other."""
    by_letter: dict[str, list[str]] = {}
    for phrase in phrases:
        by_letter.setdefault(phrase[0], []).append(phrase[1:])
    return "|".join(f"{letter}(?:{'|'.join(rests)})" for letter, rests in by_letter.items())


def words(text: str) -> list[str]:
    """The words of a text, in order, repetitions included."""
    low = text.lower()
    if low.isascii():
        return _ASCII_WORD.findall(low)
    found: list[str] = []
    for word in _WORD.findall(low):
        if word[0] > "\u2e80":
            found.extend(word[i : i + 2] for i in range(max(1, len(word) - 1)))
        else:
            found.append(word)
    return found
