"""What the words of a sentence tell of it, whatever was said before: that it adds, ends, changes, forbids or binds.

A sentence is compared with many others, so it is remembered with what was found of it.
"""

from __future__ import annotations

from functools import cached_property, lru_cache

from health.compaction.reading.ledger_patterns import is_binding
from health.compaction.reading.value_patterns import (
    ADDS,
    CHANGES,
    DEEDS,
    ENDS,
    FORBIDS,
    OPENS_CHANGE,
    SENTENCES,
    SOMETIMES,
)


class Signs:
    """Each is looked for when it is first asked."""

    def __init__(self, text: str) -> None:
        self._text, self._low = text, text.lower()

    @cached_property
    def adds(self) -> bool:
        return bool(ADDS.search(self._low))

    @cached_property
    def sometimes(self) -> bool:
        return bool(SOMETIMES.search(self._low))

    @cached_property
    def ends(self) -> bool:
        return bool(ENDS.search(self._low))

    @cached_property
    def changes(self) -> bool:
        return bool(CHANGES.search(self._low))

    @cached_property
    def opens(self) -> bool:
        return bool(OPENS_CHANGE.match(self._low))

    @cached_property
    def forbids(self) -> bool:
        return bool(FORBIDS.search(self._low))

    @cached_property
    def deeds(self) -> bool:
        return bool(DEEDS.search(self._low))

    @cached_property
    def binds(self) -> bool:
        return is_binding(self._text)


@lru_cache(maxsize=SENTENCES)
def signs_of(text: str) -> Signs:
    return Signs(text)
