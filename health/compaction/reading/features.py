"""What a chunk says that nothing else says: its names, numbers, identifiers and rare words, with a weight each.

A table of shapes gives the weight of a word; how often it occurs in the history lowers it. What stands only in
tool results weighs half until a person or the agent takes it up: it is then in play.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Sequence
from itertools import accumulate, count, pairwise
from operator import add
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from health.compaction.reading.text import CJK, STOPWORDS, of_text

_TOKEN = re.compile(rf"[A-Za-z0-9_]++(?:[-./:@'’][A-Za-z0-9_]++)*+|[{CJK}]++|[^\W\d_]++")
_ASCII_TOKEN = re.compile(r"[A-Za-z0-9_]++(?:[-./:@'][A-Za-z0-9_]++)*+")
_DIGIT, _JOINT = re.compile(r"\d"), re.compile(r"[_/.@:]")
LONGEST = 40
_NUMBER, _NAME, _CAPITAL, _WORD, _PAIR = 3.0, 2.5, 2.0, 1.0, 0.6
_ONLY_IN_RESULTS = 0.5
# What is in play stays worth as much as if it had been named this often.
_ENOUGH = 4
# What is named more often than this tells no row from another.
_RARE = 8
# Said again it adds less and less; after the fourth time nothing.
DIMINISHING = (1.0, 0.5, 0.4, 0.3)


def tokens_of(text: str) -> list[str]:
    """The features of a text as written, Chinese in pairs; in order, repetitions included."""
    if text.isascii():
        return _ASCII_TOKEN.findall(text)
    found: list[str] = []
    for token in _TOKEN.findall(text):
        if token[0] > "\u2e80":
            found.extend(map(add, token, token[1:]) if len(token) > 1 else token)
        else:
            found.append(token)
    return found


def shape_weight(token: str) -> float:
    """How much a word's shape promises, before its frequency is known."""
    if token[0] > "\u2e80":
        return _PAIR
    if token.lower() in STOPWORDS or (len(token) < 2 and not token.isdigit()):
        return 0.0
    if len(token) > LONGEST and not any(mark in token for mark in "./@"):
        return 0.1
    if not token.isalpha():  # a plain word, which most are, has neither digits nor joints
        if _DIGIT.search(token):
            return _NUMBER
        if _JOINT.search(token):
            return _NAME
    if not (token.islower() or token.istitle() or token.isupper()):
        return _NAME
    return _CAPITAL if token[0].isupper() else _WORD


class Names:
    """The names that texts hold, numbered: what a text says is then an array, found once, and many are counted at once.

    A token is numbered as its name, in lower case: spellings that differ in case are one thing. Threads may share it: a
    name has one number whoever is first, and a number that came too late stands for nothing.
    """

    def __init__(self) -> None:
        self.known: dict[int, str] = {}
        self.weighed: dict[str, tuple[int, float]] = {}
        self._numbers: dict[str, int] = {}
        self._next = count()

    def weigh(self, token: str) -> tuple[int, float]:
        """Its number, and how much this spelling promises; of a word that promises nothing the number says nothing."""
        weight = shape_weight(token)
        found = self.weighed[token] = (self.number(token) if weight else 0), weight
        return found

    def number(self, token: str) -> int:
        name = token.lower()
        found = self._numbers.get(name)
        if found is None:
            found = next(self._next)
            self.known[found] = name
            found = self._numbers.setdefault(name, found)
        return found


_NUMBERS, _SHAPES, _BYTES = "q", "d", 8
# So many spellings are weighed before it begins anew, some 50 MB; what a text says is then read again.
MOST_NAMES = 200_000
_names = Names()


def _current() -> Names:
    global _names
    if len(_names.weighed) > MOST_NAMES:
        _names = Names()
    return _names


class _Named(NamedTuple):
    """The numbers of what a text names, each once, and the weights of the spellings that promise most: as bytes, which
    those of many texts are joined of quickest.
    """

    numbers: bytes
    shapes: bytes


@of_text
def _named(text: str, names: Names) -> _Named:
    shapes: dict[int, float] = {}
    weighed = names.weighed
    for token in dict.fromkeys(tokens_of(text)):
        number, weight = weighed.get(token) or names.weigh(token)
        if weight and weight > shapes.get(number, 0.0):
            shapes[number] = weight
    return _Named(array(_NUMBERS, shapes).tobytes(), array(_SHAPES, shapes.values()).tobytes())


class Features:
    """The features of one history, numbered. `each` are the numbers of each chunk's, `names` are in lower case."""

    def __init__(self, texts: Sequence[str], *, from_tool: Sequence[bool]) -> None:
        names = _current()
        named = [_named(text, names) for text in texts]
        lengths = [len(one.numbers) // _BYTES for one in named]
        keys = np.frombuffer(b"".join([one.numbers for one in named]), _NUMBERS)
        known, keys = _numbered_anew(keys)
        chunk = np.repeat(np.arange(len(texts)), lengths)
        self.names = [names.known[number] for number in known.tolist()]
        self._shapes = np.zeros(len(known))
        np.maximum.at(self._shapes, keys, np.frombuffer(b"".join([one.shapes for one in named]), _SHAPES))
        is_found = np.repeat(np.array(from_tool, dtype=bool), lengths)
        said, found = [np.bincount(keys[which], minlength=len(known)) for which in (~is_found, is_found)]
        self.frequency: list[int] = (said + found).tolist()
        weights = self._weights(said, found, most=len(texts) + 2)
        self.weights: list[float] = weights.tolist()
        ends = [0, *accumulate(lengths)]
        flat = keys.tolist()
        self.each: list[list[int]] = [flat[start:end] for start, end in pairwise(ends)]
        # What of results a person, the agent or a call took up: its rows are more likely to be needed than others.
        taken_up = (said > 0) & (found > 0) & (self._shapes >= _NAME) & (said + found <= _RARE)
        self.in_play: list[bool] = (np.bincount(chunk, taken_up[keys], len(texts)) > 0).tolist()
        # What each chunk says by itself, as if nothing else stood.
        self.own: list[float] = np.bincount(chunk, weights[keys], len(texts)).tolist()

    def _weights(self, said: NDArray[np.int64], found: NDArray[np.int64], *, most: int) -> NDArray[np.float64]:
        """What each promises by its shape, by how rare it is among chunks, and by who named it."""
        is_held = (said > 0) & (found > 0) & (self._shapes >= _CAPITAL)
        frequency = said + found
        frequency = np.where(is_held, np.minimum(frequency, _ENOUGH), frequency)
        rarity = np.log(most / (frequency + 0.5)) / math.log(most)
        return self._shapes * rarity * np.where(said > 0, 1.0, _ONLY_IN_RESULTS)


def _numbered_anew(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct keys in the order of their first places, and of each key its place among them."""
    places = np.arange(len(keys))
    first = np.empty(keys.max(initial=0) + 1, dtype=np.int64)
    first[keys[::-1]] = places[::-1]  # of several the last that is written stays
    begins = first[keys] == places
    return keys[begins], (np.cumsum(begins) - 1)[first[keys]]
