"""What one sentence says by itself: its values, and what it is about.

A value is found by its looks, a subject by its place: behind "the" or "for", or at the head of a clause. In Chinese,
where small words tell little, it is whatever else is said.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from health.compaction.reading.signs import signs_of
from health.compaction.reading.text import STOPWORDS, of_text
from health.compaction.reading.value_patterns import (
    AFTER_SUBJECT,
    ASIDE,
    ATTRIBUTES,
    BREAKS,
    CHOSEN,
    CLAUSE,
    COMMON,
    DENIED,
    DETERMINERS,
    ENGLISH_SORTS,
    HEADING,
    IN_CHARGE,
    NO_NAME,
    QUOTED,
    SORTS,
    UNIT_WORDS,
    ZH_COMMON,
    ZH_GENERIC,
    ZH_NAME,
    Sort,
    may_hold_values,
    stem,
)
from health.compaction.reading.value_words import (
    CJK_BEGINS,
    content_of,
    is_word,
    spelt_in,
    stems_of,
    tokens_of,
)

# What may be in force besides names.
VALUES = tuple(sort for sort in SORTS if sort is not Sort.NAME)
# Words of a subject; words and Chinese pairs beside a value that has no subject.
LONGEST_PHRASE, MOST_BESIDE, MOST_PAIRS = 3, 3, 2


class ReadSentence(NamedTuple):
    """What a sentence says by itself, in the fields of a statement."""

    tokens: tuple[str, ...]
    values: Mapping[Sort, frozenset[str]]
    topics: frozenset[str]
    content: frozenset[str]
    bare: bool


@of_text
def all_content(text: str) -> frozenset[str]:
    return frozenset(content_of(tokens_of(text)))


@of_text
def read_sentence(text: str, names: frozenset[str]) -> ReadSentence:
    """A conversation is heard anew at each compaction, its sentences are looked at once."""
    values, rest = _values(DENIED.sub(" ", QUOTED.sub(" ", text)), names)
    tokens = stems_of(spelt_in(text)) if rest is text else tokens_of(rest)
    content = frozenset(content_of(tokens))
    named_in = values.get(Sort.NAME, frozenset())
    stating = _clauses_with(named_in | {"§"}, rest) if named_in or "§" in tokens else []
    stated = frozenset(topics_of([word for clause in stating for word in (*clause, ",")], names))
    named = frozenset(name for clause in stating for name in _attributes(clause) if not topics_of(clause, frozenset()))
    bare = _is_bare(text, tokens, content - named_in, stated, named if values.keys() <= CHOSEN else named | named_in)
    if values.keys() - {Sort.NAME} and max(named_in, default="") > CJK_BEGINS:
        named |= named_in  # 李先生周五来 is of him
    return ReadSentence(tokens, values, stated | named or frozenset(topics_of(tokens, names)), content | named, bare)


def _clauses_with(values: frozenset[str], text: str) -> list[tuple[str, ...]]:
    """The words of the clauses in which one of the values stands."""
    clauses = CLAUSE.split(HEADING.sub(r"\1 ", text) if ": " in text else text)
    return [clause for clause in map(tokens_of, clauses) if not values.isdisjoint(clause)]


def _attributes(clause: Sequence[str]) -> Iterator[str]:
    """ "Budget" in "the budget is 900", where no more is said of what it is the budget of; 预算 in 预算改到1100元."""
    tokens = (",", *clause, ".")
    if ATTRIBUTES.isdisjoint(tokens) and max(tokens) < CJK_BEGINS:
        return
    for before, word, behind in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if (
            word in ATTRIBUTES
            and (before in DETERMINERS or before == ",")
            and (behind in AFTER_SUBJECT or behind == "§")
        ):
            yield word
        if word > CJK_BEGINS and behind == "§":
            yield from (name for name in ZH_GENERIC if name in word)


def _is_bare(
    text: str, tokens: Sequence[str], beside: frozenset[str], stated: frozenset[str], named: frozenset[str]
) -> bool:
    """Little is said beside a value, and no subject is named."""
    if len(beside) > MOST_BESIDE:
        return False
    alone = not (beside or named) and (text.isascii() or not any(map(_tells, itertools.chain(*tokens))))
    most = MOST_PAIRS if max(beside, default="") > CJK_BEGINS else MOST_BESIDE
    changed = len(beside) <= most and not any(word < CJK_BEGINS for word in stated & beside)
    if _tells_change(text):
        return changed
    # "Call me on Saturday" begins with a deed: it says something of its own.
    return alone and not any(first[:1].isalpha() and first not in STOPWORDS for first in tokens[:1])


def _tells_change(text: str) -> bool:
    return signs_of(text).changes or signs_of(text).opens or signs_of(text).closes


def _tells(letter: str) -> bool:
    return letter > CJK_BEGINS and letter.isalpha() and letter not in ZH_COMMON


def _values(text: str, names: frozenset[str]) -> tuple[Mapping[Sort, frozenset[str]], str]:
    """The values of a sentence by their sorts, and the sentence with a mark in the place of all but names."""
    found: dict[Sort, frozenset[str]] = {}
    rest = text
    sorts = ENGLISH_SORTS if text.isascii() else SORTS
    for sort in VALUES if may_hold_values(text.lower()) else ():
        if hits := sorts[sort].findall(rest):
            found[sort] = _as_values(hits)
            rest = UNIT_WORDS.sub("§", sorts[sort].sub(" § ", rest))
    named = [hit for hit in sorts[Sort.NAME].findall(rest) if _names_something(hit, names)]
    named += [hit for hit in IN_CHARGE.findall(rest) if is_telling(hit.lower())]
    if not text.isascii() and (hits := ZH_NAME.findall(rest)):
        named += hits
        rest = ZH_NAME.sub("§", rest)
    if named:
        found[Sort.NAME] = _as_values(named)
    return found, rest


def _as_values(hits: Iterable[str]) -> frozenset[str]:
    return frozenset(stem(" ".join(hit.lower().split())) for hit in hits)


def _names_something(word: str, names: frozenset[str]) -> bool:
    """Capitalised amid a sentence here or elsewhere, or written like no word."""
    return word.lower() in names or (
        is_telling(word.lower()) and not word[1:].islower() and "'" not in word and "’" not in word
    )


def topics_of(tokens: Sequence[str], names: frozenset[str]) -> list[str]:
    """What stands behind "the", "my" or "for", or begins a clause and is told of; all of it, in Chinese."""
    found = [word for word in content_of(tokens) if word > CJK_BEGINS or word in names]
    phrase: list[str] = []
    begun, certain = True, False
    for token in [*tokens, "."]:
        if begun and len(phrase) < LONGEST_PHRASE and is_word(token) and not (phrase and token.endswith("ed")):
            phrase.append(token)
            continue
        if phrase and (certain or token in AFTER_SUBJECT) and token not in ATTRIBUTES:
            found += phrase
        certain = token in DETERMINERS or token in ASIDE
        begun, phrase = certain or token in BREAKS, []
    return found


def is_telling(word: str) -> bool:
    return len(word) > 1 and word not in STOPWORDS and stem(word) not in COMMON and not word.endswith(NO_NAME)
