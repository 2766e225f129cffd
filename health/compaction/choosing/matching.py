"""How well messages match what is asked: BM25 and embeddings fused by rank.

Matching is worth only as much as the question is specific: a general one ("go on") chooses worse than chance.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from health.compaction.reading.features import Features, shape_weight, tokens_of
from health.compaction.reading.text import remembered

_K1, _B = 1.2, 0.6
_RANK_OFFSET = 10
# A question names no more things than this; a description of a whole task does.
FEW_NAMED = 4
# A word of a question that nobody said ("remind") tells little of what it asks for, against the rarest one.
UNHEARD = 0.5
_FEWEST = 3  # letters of a stem
_ENDINGS = ("ations", "ation", "ings", "ing", "edly", "ed", "ies", "ely", "es", "ly", "e", "s")


@remembered(65_536)
def stem(word: str) -> str:
    """A crude stem: enough that "booked" finds "booking"."""
    if not word.isascii() or not word.isalpha():
        return word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _FEWEST:
            return word[: -len(ending)]
    return word


class Question:
    """What is asked, in stems. `specific` is 0 where none of it occurs in the history, or all of it everywhere."""

    def __init__(self, text: str, features: Features) -> None:
        self.features = features
        asked = {stem(token.lower()) for token in tokens_of(text) if shape_weight(token)}
        heads = {one[:_FEWEST] for one in asked}  # which a stem never cuts off
        near = ((key, name) for key, name in enumerate(features.names) if name[:_FEWEST] in heads)
        stems = {key: one for key, name in near if (one := stem(name)) in asked}
        frequency: dict[str, int] = {}
        for key, one in stems.items():
            frequency[one] = frequency.get(one, 0) + features.frequency[key]
        count = len(features.each) + 1
        self.rarity = {one: math.log((count + 1) / (times + 0.5)) for one, times in frequency.items() if times < count}
        unheard = [one for one in asked if one not in frequency and one[0] <= "\u2e80"]
        self._says = sum(self.rarity.values()) + UNHEARD * len(unheard) * math.log((count + 1) / 0.5)
        self.stem_of = {key: one for key, one in stems.items() if one in self.rarity}

    @property
    def narrow(self) -> float:
        """What names many things asks for none of them: 1 for a question, less the more words of it were said."""
        return min(1.0, FEW_NAMED / max(1, len(self.rarity)))

    @property
    def specific(self) -> float:
        return min(1.0, sum(self.rarity.values()) / (2.5 * math.log(len(self.features.each) + 2)))

    def said_by(self, keys: Iterable[int]) -> float:
        """How much of the question these features say, from 0 to 1, rare words for more. Words that nobody said count,
        but for pairs in Chinese, most of which are no words.
        """
        hit = {self.stem_of[key]: None for key in keys if key in self.stem_of}
        return sum(self.rarity[one] for one in hit) / max(1e-9, self._says)

    def bm25(self, lengths: Sequence[int], each: Sequence[Iterable[int]]) -> NDArray[np.float64]:
        """One score for each collection of features; `lengths` in tokens."""
        mean = sum(lengths) / max(1, len(lengths))
        scores = np.zeros(len(lengths))
        asked = frozenset(self.stem_of)
        for at, keys in enumerate(each):
            if asked.isdisjoint(keys):
                continue
            hit = dict.fromkeys(self.stem_of[key] for key in keys if key in asked)  # a set's order is chance
            norm = (_K1 + 1) / (1 + _K1 * (1 - _B + _B * lengths[at] / mean))
            scores[at] = norm * sum(self.rarity[one] for one in hit)
        return scores


def fused(words: NDArray[np.float64], meaning: NDArray[np.float64], *, weight: float) -> NDArray[np.float64]:
    """Reciprocal ranks added up, those of meaning for so much. Zero or less has no rank."""
    return _reciprocal(words) + weight * _reciprocal(meaning)


def _reciprocal(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    ranks = np.empty(len(scores))
    ranks[np.argsort(-scores, kind="stable")] = np.arange(len(scores))
    return np.where(scores > 0, _RANK_OFFSET / (_RANK_OFFSET + ranks), 0.0)
