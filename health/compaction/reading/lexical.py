"""Vectors without a model: TF-IDF over hashed words, the same in every process. Used where no embedder answers.

A word's place and sign come from its CRC-32, never from `hash()`, which differs from process to process. How
rare a word is, is counted over the texts of one call, so vectors of two calls are not compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from health.compaction.reading.text import words
from health.compaction.terms.ports import Embedded

NAME = "lexical"
# Wide enough that two of a few hundred words rarely share a place, narrow enough for 50,000 rows in memory.
DIMENSIONS = 512
# A message of 10 MB says what it is about in its first and last parts: the rest would only cost time.
MOST_CHARACTERS = 20_000


def vectors(texts: Sequence[str]) -> Embedded:
    """One row of length 1 for each text; a text without words is a row of zeros. Linear in the texts."""
    counts = [Counter(words(_read(text))) for text in texts]
    documents = Counter(word for count in counts for word in count)
    weights = _weights(documents, len(counts))
    rows = np.zeros((len(counts), DIMENSIONS), dtype=np.float32)
    for row, count in zip(rows, counts, strict=True):
        _fill(row, count, weights)
    return Embedded(vectors=normalised(rows), name=NAME)


def normalised(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """The rows at length 1, those of zeros as they are."""
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1), dtype=np.float32)


def _read(text: str) -> str:
    if len(text) <= MOST_CHARACTERS:
        return text
    half = MOST_CHARACTERS // 2
    return f"{text[:half]}\n{text[-half:]}"


def _weights(documents: Counter[str], total: int) -> dict[str, tuple[int, float]]:
    """For each word its place and its signed weight: smoothed inverse document frequency."""
    rarity = {seen: float(np.log((1 + total) / (1 + seen))) + 1 for seen in set(documents.values())}
    places: dict[str, tuple[int, float]] = {}
    for word, seen in documents.items():
        mark = crc32(word.encode())
        places[word] = (mark % DIMENSIONS, rarity[seen] if mark & 0x8000_0000 else -rarity[seen])
    return places


def _fill(row: NDArray[np.float32], count: Counter[str], weights: dict[str, tuple[int, float]]) -> None:
    if not count:
        return
    places = [weights[word] for word in count]
    times = 1 + np.log(np.fromiter(count.values(), dtype=np.float32, count=len(count)))
    values = times * np.array([weight for _, weight in places], dtype=np.float32)
    np.add.at(row, [place for place, _ in places], values)
