"""What the words of a sentence tell of it, whatever was said before: that it adds, ends, changes, forbids or binds.

A sentence is compared with many others, so it is remembered with what was found of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from health.compaction.reading.ledger_patterns import is_binding
from health.compaction.reading.value_patterns import (
    ADDS,
    CHANGES,
    CLOSES_CHANGE,
    DEEDS,
    ENDS,
    FORBIDS,
    OPENS_CHANGE,
    PAST,
    SENTENCES,
    SOMETIMES,
)

_FOUND: Mapping[str, Callable[[str], re.Match[str] | None]] = {
    "adds": ADDS.search,
    "sometimes": SOMETIMES.search,
    "ends": ENDS.search,
    "changes": CHANGES.search,
    "opens": OPENS_CHANGE.match,
    "closes": CLOSES_CHANGE.search,
    "past": PAST.search,
    "forbids": FORBIDS.search,
    "deeds": DEEDS.search,
}


class Signs:
    """Each is looked for when it is first asked."""

    adds: bool
    sometimes: bool
    ends: bool
    changes: bool
    opens: bool
    closes: bool
    past: bool
    forbids: bool
    deeds: bool
    binds: bool

    def __init__(self, text: str) -> None:
        self._text, self._low = text, text.lower()

    def __getattr__(self, sign: str) -> bool:
        """Only what is not known yet comes here."""
        if sign != "binds" and sign not in _FOUND:
            raise AttributeError(sign)
        found = is_binding(self._text) if sign == "binds" else _FOUND[sign](self._low) is not None
        setattr(self, sign, found)
        return found


@lru_cache(maxsize=SENTENCES)
def signs_of(text: str) -> Signs:
    return Signs(text)
