"""How much two texts are alike, in any language, in time that grows with their length and no faster."""

from __future__ import annotations

from collections import Counter

PIECE = 3
# Of a longer text the two ends are read.
MOST_CHARACTERS = 20_000


def likeness(first: str, second: str) -> float:
    """The share of pieces of three characters that both have (Dice), from 0 to 1. Case and blanks do not count."""
    ours, theirs = _pieces(first), _pieces(second)
    pieces = ours.total() + theirs.total()
    return 2 * (ours & theirs).total() / pieces if pieces else 1.0


def _pieces(text: str) -> Counter[str]:
    half = MOST_CHARACTERS // 2
    read = text if len(text) <= MOST_CHARACTERS else f"{text[:half]} {text[-half:]}"
    plain = " ".join(read.casefold().split())
    return Counter(plain[at : at + PIECE] for at in range(max(1, len(plain) - PIECE + 1))) if plain else Counter()
