"""What was counted before, by hash: bounded, and nearly free to ask.

Two generations do a strict LRU's work without moving anything at a hit: what is not asked for while one
generation fills up is forgotten. Holds hashes and sizes, never texts: at most about 20 MB.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

GENERATION = 65_536


class Memory:
    """Sizes of texts. Threads may share one: at worst a text is counted twice."""

    def __init__(self, generation: int = GENERATION) -> None:
        self._generation = generation
        self._young: dict[int, int] = {}
        self._old: dict[int, int] = {}

    def recall(self, texts: Sequence[str]) -> list[int | None]:
        """Each text's size, None where it is not known."""
        young, old = self._young, self._old
        found = [young.get(hash(text)) for text in texts]
        if old and None in found:
            found = [old.get(hash(text)) if size is None else size for text, size in zip(texts, found, strict=True)]
            self.keep((text, size) for text, size in zip(texts, found, strict=True) if size is not None)
        return found

    def keep(self, sizes: Iterable[tuple[str, int]]) -> None:
        for text, size in sizes:
            if len(self._young) >= self._generation:
                self._old, self._young = self._young, {}
            self._young[hash(text)] = size

    def __len__(self) -> int:
        return len(self._young) + len(self._old)
