"""Which words of a sentence belong together: what stands before a word, what it is of, what marks it.

A sentence is compared with many others, so its words are looked at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection
from functools import lru_cache

from health.compaction.reading.value_patterns import BREAKS, DETERMINERS, INDEFINITE, OF, SENTENCES, marks_of
from health.compaction.reading.value_statements import is_word

# Behind other small words may stand what a value is for.
HEADED = frozenset(("of", "to"))


@lru_cache(maxsize=SENTENCES)
def words_before(told: tuple[str, ...]) -> tuple[tuple[str, str, bool, bool, tuple[str, ...]], ...]:
    """Each word with the one behind it, whether it is a definite thing, and whether it may be of what follows."""
    found, tokens = [], ("", "", *told)
    for at, (before, word) in enumerate(itertools.pairwise(tokens), 1):
        if not is_word(before):
            continue
        definite, opens = tokens[at - 2] in DETERMINERS, not tokens[at - 2] or tokens[at - 2] in BREAKS
        part = word == "of" or (word in OF and (definite or opens or tokens[at - 2] in INDEFINITE))
        if definite or part:
            behind = tuple(each for each in tokens[at + 1 : at + 4] if each not in DETERMINERS)[:2]
            found.append((before, word, definite, part, behind))
    return tuple(found)


@lru_cache(maxsize=SENTENCES)
def heads_of(told: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Words with what they belong to: "customer" in "the customer dump", "customers" in "replies to customers"."""
    found = [
        (word, head)
        for before, word, head in zip(told, told[1:], told[2:], strict=False)
        if before in DETERMINERS and is_word(word) and is_word(head)
    ]
    for at, (head, of) in enumerate(itertools.pairwise(told)):
        if of in HEADED and is_word(head):
            found += [(word, head) for word in [one for one in told[at + 2 : at + 4] if one not in DETERMINERS][:1]]
    return tuple(found)


def marks_on(text: str, nouns: Collection[str]) -> dict[tuple[str, int], set[str]]:
    """These nouns with their marks; a change may name both: "from version two to version three"."""
    found: dict[tuple[str, int], set[str]] = {}
    for noun, at, mark in marks_of(text):
        if noun in nouns:
            found.setdefault((noun, at), set()).add(mark)
    return found
