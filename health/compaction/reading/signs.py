"""What the words of a sentence tell of it, whatever was said before: that it adds, ends, changes, forbids or binds.

A sentence is compared with many others, so it is remembered with what was found of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from health.compaction.reading.ledger_patterns import is_binding
from health.compaction.reading.text import remembered
from health.compaction.reading.value_patterns import (
    ADDS,
    ASKS,
    CHANGES,
    CLOSES_CHANGE,
    CONTRAST,
    DEEDS,
    ENDS,
    FORBIDS,
    OPENS_CHANGE,
    PAST,
    PERMITS,
    REQUEST,
    SENTENCES,
    SOMETIMES,
    Phrases,
    may_hold_values,
)

_CLAUSE = re.compile(r"[,;，；]")
# What stands in so few bytes before a comma opens the clause behind it: "also, …", 另外，…
_OPENING = 9


def _where_told(phrases: Phrases) -> Callable[[str], re.Match[str] | None]:
    """A search in the clauses that state a value, where some do: "yesterday I met Ben, the ferry is at 8"."""
    return lambda low: phrases.search(low) and next(filter(None, map(phrases.search, _valued(low))), None)


@remembered(SENTENCES)
def _valued(low: str) -> Sequence[str]:
    clauses = [clause for clause in _CLAUSE.split(low) if clause.strip()]
    valued = [one for one in clauses if may_hold_values(one)] if len(clauses) > 1 else []
    if valued and len(clauses[0].encode()) <= _OPENING:
        valued.insert(0, clauses[0])
    return valued or (low,)


_FOUND: Mapping[str, Callable[[str], re.Match[str] | None]] = {
    "adds": _where_told(ADDS),
    "sometimes": SOMETIMES.search,
    "ends": ENDS.search,
    "changes": CHANGES.search,
    "opens": OPENS_CHANGE.match,
    "closes": CLOSES_CHANGE.search,
    "past": _where_told(PAST),
    "forbids": FORBIDS.search,
    "deeds": DEEDS.search,
    "contrasts": CONTRAST.search,
    "permits": PERMITS.search,
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
    contrasts: bool
    permits: bool
    binds: bool

    @property
    def condition(self) -> frozenset[str]:
        """The words by which it holds at times only."""
        return (
            frozenset(SOMETIMES.english.findall(self._low) + SOMETIMES.chinese.findall(self._low))
            if self.sometimes
            else frozenset()
        )

    def __init__(self, text: str) -> None:
        self._text, self._low = text, text.lower()

    def __getattr__(self, sign: str) -> bool:
        """Only what is not known yet comes here."""
        if sign != "binds" and sign not in _FOUND:
            raise AttributeError(sign)
        found = is_binding(self._text) if sign == "binds" else _FOUND[sign](self._low) is not None
        setattr(self, sign, found)
        return found


@remembered(SENTENCES)
def signs_of(text: str) -> Signs:
    return Signs(text)


def is_question(text: str, *, heard: bool = True) -> bool:
    """Something that is asked; a request in the form of a question is none where it was taken note of."""
    asks = text.rstrip("\"'”’) ").endswith(("?", "？")) or ASKS.search(text.lower()) is not None
    return asks and not (heard and REQUEST.match(text))
