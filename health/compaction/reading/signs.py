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
    IF,
    OPENS_CHANGE,
    OTHERS,
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


# A change may be told in an earlier clause than what is changed: "nah, too cold, the walls will be ochre".
OF_SENTENCE = frozenset(("changes", "contrasts"))
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
        """The words by which it holds at times only. Of a clause those of its sentence; what others do is told in
        another clause."""
        told, _, _ = self._whole.partition(self._low)
        before = [word for word in _sometimes(told) if not OTHERS.fullmatch(word)]
        return frozenset((*before, *_sometimes(self._low), *IF.findall(self._whole)))

    def __init__(self, text: str, whole: str) -> None:
        self._text, self._low, self._whole = text, text.lower(), (whole or text).lower()

    def __getattr__(self, sign: str) -> bool:
        """Only what is not known yet comes here."""
        if sign != "binds" and sign not in _FOUND:
            raise AttributeError(sign)
        low = self._whole.partition(self._low)[0] + self._low if sign in OF_SENTENCE else self._low
        found = is_binding(self._text) if sign == "binds" else _FOUND[sign](low) is not None
        setattr(self, sign, found)
        return found


def _sometimes(low: str) -> list[str]:
    return SOMETIMES.english.findall(low) + SOMETIMES.chinese.findall(low) if low else []


@remembered(SENTENCES)
def signs_of(text: str, whole: str = "") -> Signs:
    """`whole` is the sentence of which the text is a clause."""
    return Signs(text, whole)


def is_question(text: str, *, heard: bool = True) -> bool:
    """Something that is asked; a request in the form of a question is none where it was taken note of."""
    asks = text.rstrip("\"'”’) ").endswith(("?", "？")) or ASKS.search(text.lower()) is not None
    return asks and not (heard and REQUEST.match(text))
