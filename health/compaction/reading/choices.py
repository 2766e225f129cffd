"""Whether two short wishes choose differently for the same thing, where neither states a value.

> Paint the shed dark green.
> The shed will rather be ochre.    another choice
> The shed needs a new lock.        tells more of it
"""

from __future__ import annotations

from collections.abc import Mapping

from health.compaction.reading.signs import signs_of
from health.compaction.reading.two_things import tell_more
from health.compaction.reading.value_patterns import CHOSEN, Sort
from health.compaction.reading.value_statements import Statement

NOTHING = frozenset[str]()
# What is chosen is said in few characters.
MOST_CHOSEN = 120


def is_other_choice(new: Statement, old: Statement, shared: frozenset[str]) -> bool:
    """Two short wishes that were taken note of, each with something of its own."""
    wishes = new.heard and old.heard and max(len(new.text), len(old.text)) <= MOST_CHOSEN
    if not wishes or _told_exactly(own_values(new, old)) or _told_exactly(own_values(old, new)):
        return False
    if _chooses_nothing(new, old) or _is_a_deed(old, shared):
        return False
    mine, theirs = new.content | new.words, old.content | old.words
    return bool(mine - theirs and theirs - mine) and _is_about_a_thing(new, shared & old.key & new.key)


def _chooses_nothing(new: Statement, old: Statement) -> bool:
    """Deeds follow each other, two bans both hold, and a ban is lifted only where it is undone."""
    sign, before = signs_of(new.text), signs_of(old.text)
    if sign.deeds or before.deeds or (sign.ends and before.ends) or tell_more(new, old):
        return True
    return before.forbids and (sign.permits or (sign.forbids and not sign.changes))


def _is_a_deed(one: Statement, shared: frozenset[str]) -> bool:
    """买牛奶: one character beside a thing."""
    return len(shared) == 1 and len({*filter(str.isalpha, one.text)}.difference(*shared)) == 1


def _told_exactly(values: Mapping[Sort, frozenset[str]]) -> bool:
    """By a day, a time, a mark, digits: "as two lines" chooses as "as a table" does."""
    in_words = (Sort.AMOUNT,) if all(map(str.isalpha, values.get(Sort.AMOUNT, ()))) else ()
    return bool(values.keys() - CHOSEN.union(in_words))


def _is_about_a_thing(new: Statement, about: frozenset[str]) -> bool:
    """Of a person much may be true at once, unless a change is told of."""
    if about & new.names and not signs_of(new.text).changes:
        return bool(about & new.topics - new.names)
    return bool(about)


def own_values(one: Statement, other: Statement) -> Mapping[Sort, frozenset[str]]:
    """The values of a sentence that the other does not have; what both name is the subject."""
    theirs = other.values
    return {sort: own for sort, values in one.values.items() if (own := values - theirs.get(sort, NOTHING))}
