"""What a chunk says that nothing else says: its names, numbers, identifiers and rare words, with a weight each.

A table of shapes gives the weight of a word; how often it occurs in the history lowers it. What stands only in
tool results weighs half until a person or the agent takes it up: it is then in play.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from operator import add

import numpy as np

from health.compaction.reading.stopwords import STOPWORDS
from health.compaction.reading.text import CJK, of_text

_TOKEN = re.compile(rf"[A-Za-z0-9_]++(?:[-./:@'’][A-Za-z0-9_]++)*+|[{CJK}]++|[^\W\d_]++")
_ASCII_TOKEN = re.compile(r"[A-Za-z0-9_]++(?:[-./:@'][A-Za-z0-9_]++)*+")
_DIGIT, _JOINT = re.compile(r"\d"), re.compile(r"[_/.@:]")
LONGEST = 40
_SAYS_NOTHING = -1
_NUMBER, _NAME, _CAPITAL, _WORD, _PAIR = 3.0, 2.5, 2.0, 1.0, 0.6
_ONLY_IN_RESULTS = 0.5
# What is in play stays worth as much as if it had been named this often.
_ENOUGH = 4
# What is named more often than this tells no row from another.
_RARE = 8
# Said again it adds less and less; after the fourth time nothing.
DIMINISHING = (1.0, 0.5, 0.4, 0.3)


@of_text
def _distinct(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tokens_of(text)))


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


@lru_cache(maxsize=65_536)
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


class _Numbers(dict[str, int]):
    """The number of each token as written; a new one is numbered when it is first asked for.

    Spellings that differ in case have one number: a name, and the weight of the spelling that promises most.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.shapes: list[float] = []
        self._by_name: dict[str, int] = {}

    def __missing__(self, token: str) -> int:
        number, weight = _SAYS_NOTHING, shape_weight(token)
        if weight:
            name = token.lower()
            number = self._by_name.setdefault(name, len(self.names))
            if number == len(self.names):
                self.names.append(name)
                self.shapes.append(weight)
            elif weight > self.shapes[number]:
                self.shapes[number] = weight
        self[token] = number
        return number


def _times(keys: list[int], count: int) -> list[int]:
    """How often each number below `count` is among the keys."""
    times: list[int] = np.bincount(np.array(keys, dtype=np.intp), minlength=count).tolist()
    return times


class Features:
    """The features of one history, numbered. `each` are the numbers of each chunk's, `names` are in lower case."""

    def __init__(self, texts: Sequence[str], *, from_tool: Sequence[bool]) -> None:
        numbers = _Numbers()
        self.names, self._shapes, number_of = numbers.names, numbers.shapes, numbers.__getitem__
        named: dict[bool, list[int]] = {False: [], True: []}
        self.each: list[list[int]] = []
        for text, tool in zip(texts, from_tool, strict=True):
            distinct = dict.fromkeys(map(number_of, _distinct(text)))
            distinct.pop(_SAYS_NOTHING, None)
            keys = list(distinct)
            self.each.append(keys)
            named[tool] += keys
        said, resulted = [_times(named[tool], len(self.names)) for tool in (False, True)]
        self.frequency = [*map(add, said, resulted)]
        self._rarity, self._scale = self._rarities(), math.log(len(texts) + 2)
        self.weights = [*map(self._weight, range(len(self.names)), said, resulted)]
        # What of results a person, the agent or a call took up: its rows are more likely to be needed than others.
        taken_up = {
            key
            for key, (told, found) in enumerate(zip(said, resulted, strict=True))
            if told and found and self._shapes[key] >= _NAME and told + found <= _RARE
        }
        self.in_play = [not taken_up.isdisjoint(keys) for keys in self.each]
        # What each chunk says by itself, as if nothing else stood.
        self.own = [sum(map(self.weights.__getitem__, keys)) for keys in self.each]

    def _rarities(self) -> dict[int, float]:
        """By the number of chunks that say a thing, how rare it is."""
        most = len(self.each) + 2
        return {times: math.log(most / (times + 0.5)) for times in {*self.frequency, _ENOUGH}}

    def _weight(self, key: int, said: int, resulted: int) -> float:
        frequency, place = said + resulted, 1.0
        if not said:
            place = _ONLY_IN_RESULTS
        elif resulted and self._shapes[key] >= _CAPITAL:
            frequency = min(frequency, _ENOUGH)
        return self._shapes[key] * self._rarity[frequency] / self._scale * place
