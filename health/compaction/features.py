"""What a chunk says that nothing else says: its names, numbers, identifiers and rare words, with a weight each.

A table of shapes gives the weight of a word; how often it occurs in the history lowers it. What stands only in
tool results weighs little until a person or the agent takes it up: it is then in play.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from health.compaction.stopwords import STOPWORDS
from health.compaction.text import CJK

_TOKEN = re.compile(rf"[A-Za-z0-9_]+(?:[-./:@'’][A-Za-z0-9_]+)*|[{CJK}]+|[^\W\d_]+")
LONGEST = 40
_NUMBER, _NAME, _CAPITAL, _WORD, _PAIR = 3.0, 2.5, 2.0, 1.0, 0.6
_IN_PLAY, _ONLY_IN_RESULTS = 3.0, 0.25
# What is in play stays worth as much as if it had been named this often.
_ENOUGH = 4
# Said again it adds less and less; after the fourth time nothing.
DIMINISHING = (1.0, 0.5, 0.4, 0.3)


def tokens_of(text: str) -> list[str]:
    """The distinct features of a text as written, Chinese in pairs; in order of appearance."""
    found: dict[str, None] = {}
    for token in _TOKEN.findall(text):
        if token[0] > "\u2e80":
            for at in range(max(1, len(token) - 1)):
                found[token[at : at + 2]] = None
        else:
            found[token] = None
    return list(found)


def shape_weight(token: str) -> float:
    """How much a word's shape promises, before its frequency is known."""
    if token[0] > "\u2e80":
        return _PAIR
    if token.lower() in STOPWORDS or (len(token) < 2 and not token.isdigit()):
        return 0.0
    if len(token) > LONGEST and not any(mark in token for mark in "./@"):
        return 0.1
    if any(char.isdigit() for char in token):
        return _NUMBER
    if any(mark in token for mark in "_/.@:") or not (token.islower() or token.istitle() or token.isupper()):
        return _NAME
    return _CAPITAL if token[0].isupper() else _WORD


class Features:
    """The weights of all features of one history. `each` are the features of each chunk, lower case."""

    def __init__(self, texts: Sequence[str], *, from_tool: Sequence[bool]) -> None:
        shapes: dict[str, float] = {}
        lowered: dict[str, str] = {}
        self.each: list[list[str]] = []
        said: Counter[str] = Counter()
        resulted: Counter[str] = Counter()
        for text, tool in zip(texts, from_tool, strict=True):
            keys = self._keys(tokens_of(text), shapes, lowered)
            self.each.append(keys)
            (resulted if tool else said).update(keys)
        self.frequency = said + resulted
        self.weights = self._weights(shapes, said, resulted)

    def own(self, chunk: int) -> float:
        """What a chunk says by itself, as if nothing else stood."""
        return sum(self.weights[key] for key in self.each[chunk])

    @staticmethod
    def _keys(tokens: Iterable[str], shapes: dict[str, float], lowered: dict[str, str]) -> list[str]:
        keys: dict[str, None] = {}
        for token in tokens:
            key = lowered.get(token)
            if key is None:
                key = lowered[token] = token.lower()
                shapes[key] = max(shapes.get(key, 0.0), shape_weight(token))
            if shapes[key]:
                keys[key] = None
        return list(keys)

    def _weights(self, shapes: dict[str, float], said: Counter[str], resulted: Counter[str]) -> dict[str, float]:
        count = len(self.each) + 1
        scale = 1 / math.log(count + 1)
        weights = {}
        for key, frequency in self.frequency.items():
            if not said[key]:
                place = _ONLY_IN_RESULTS
            elif resulted[key] and shapes[key] >= _CAPITAL:
                place, frequency = _IN_PLAY, min(frequency, _ENOUGH)
            else:
                place = 1.0
            weights[key] = shapes[key] * math.log((count + 1) / (frequency + 0.5)) * scale * place
        return weights
