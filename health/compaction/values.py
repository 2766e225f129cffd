"""Which sentences are no longer in force, since the user changed, corrected or withdrew what they state.

A sentence states a value: a time, a day, an amount, an address, a name, or what is chosen for something. A later one
about the same subject with another value of the same sort takes its place; so does one without a subject right
behind it. What is added ("also", "a second one") replaces nothing, nor does what is said of another subject.

    > The dentist is at 11:20.                outdated
    > They moved the dentist, 14:10.          in force
    > The hairdresser is at 09:35.            in force

The subject is what two sentences share and few others have. Nothing is understood: when in doubt both stand.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from health.compaction.quoting import own_sentences
from health.compaction.stopwords import STOPWORDS
from health.compaction.text import CJK, Passage, passages
from health.compaction.units import WRITTEN, Role, Unit
from health.compaction.value_patterns import (
    ADDS,
    AFTER_SUBJECT,
    ANYBODY,
    ASIDE,
    ATTRIBUTES,
    BREAKS,
    CHANGES,
    CHOSEN,
    CLAUSE,
    CODE,
    COMMON,
    DETERMINERS,
    ENDS,
    FORBIDS,
    INDEFINITE,
    NO_NAME,
    NUMBERED,
    OF,
    ONES,
    OPENS_CHANGE,
    QUOTED,
    REQUEST,
    SHORTENED,
    SOMETIMES,
    SORTS,
    STARTS,
    TALKING,
    TELLS,
    TOKEN,
    UNITS,
    ZH_COMMON,
    ZH_GENERIC,
    ZH_NAME,
    ZH_WAYS,
    Sort,
    stem,
)

# Nobody states a value in more characters; what is longer tells a story.
MOST_STATED, MOST_CHOSEN, MOST_ECHOED, MOST_NOTED = 240, 120, 160, 100
# Of the statements that share a word, so many of the newest are compared: time stays linear in what was said.
MOST_COMPARED = 64
# A correction without a subject belongs to one of the last so many messages of the user.
NEAR = 2
# Shares of the most a word can weigh, and of what a sentence is about.
LEAST_WEIGHT, LEAST_SHARED, LEAST_CHANGED = 0.4, 0.45, 0.4
FEWEST_STATEMENTS = 40
PAIR, PAIR_APART, OTHER = 0.7, 0.2, 0.5
LONGEST_PHRASE, MOST_BESIDE, MOST_PAIRS = 3, 3, 2
HEARD = 4_000  # characters of a message that are searched for nouns, names and echoes


class Said(NamedTuple):
    role: Role
    text: str


class Outdated(NamedTuple):
    """Characters of a sentence of a message that the message `by` took the force of."""

    message: int
    start: int
    end: int
    by: int


@dataclass(frozen=True, eq=False, slots=True)
class Statement:
    """A sentence by the user that may state a value. `turn` counts the messages of the user.

    `topics` are what it is about by its grammar, `content` is all that says something, values that are no names
    aside. `key` is what
    of it the assistant said back, `heard` marks what it just took note of,
    `bare` what says nothing but a value.
    """

    message: int
    turn: int
    start: int
    end: int
    text: str
    tokens: tuple[str, ...]
    values: Mapping[Sort, frozenset[str]]
    topics: frozenset[str]
    content: frozenset[str]
    key: frozenset[str]
    heard: bool
    bare: bool

    @property
    def names(self) -> frozenset[str]:
        return self.values.get(Sort.NAME, frozenset())


def outdated(said: Sequence[Said]) -> list[Outdated]:
    """The sentences that are no longer in force, in order. The time is linear in what was said."""
    return _outdated(said, _heard(said))


def is_question(text: str) -> bool:
    """Something that is asked; a request in the form of a question is none."""
    return _is_question(text, heard=True)


def states_a_value(sentence: str) -> bool:
    """Whether a time, a day, an amount or an address stands in it."""
    return len(sentence) <= MOST_STATED and bool(_values(sentence, frozenset())[0].keys() - CHOSEN)


Place = tuple[str, int, int]


class Force(NamedTuple):
    """Places are the id of a message, and the start and the end of a sentence in it.

    `gone` are no longer in force; of `followed` each is told only together with a later one about the same.
    """

    gone: Mapping[str, tuple[tuple[int, int], ...]]
    followed: Mapping[Place, Place]


@lru_cache(maxsize=8)
def in_force(units: tuple[Unit, ...]) -> Force:
    """What of the messages is no longer in force, and what may not be."""
    spoken = [unit for unit in units if not (unit.inserted or unit.framed) and unit.kind not in WRITTEN]
    said = [Said(unit.role, unit.content) for unit in spoken]
    book = _heard(said)
    gone: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for one in _outdated(said, book):
        gone[spoken[one.message].id].append((one.start, one.end))
    place = lambda one: (spoken[one.message].id, one.start, one.end)  # noqa: E731
    followed = {place(old): place(new) for old, new in book.followed.items() if old not in book.gone}
    return Force({name: tuple(places) for name, places in gone.items()}, followed)


def _heard(said: Sequence[Said]) -> _Book:
    statements = list(_statements(said))
    book = _Book(statements, _subjects(said))
    for statement in statements:
        book.hear(statement)
    return book


def _outdated(said: Sequence[Said], book: _Book) -> list[Outdated]:
    found = {Outdated(old.message, old.start, old.end, by.message) for old, by in book.gone.items()}
    return sorted(found.union(*(_echoes(said, old, by) for old, by in book.gone.items())))


# What the user states


def _statements(said: Sequence[Said]) -> Iterator[Statement]:
    names, turn = _names(said), 0
    for at, one in enumerate(said):
        if one.role is Role.USER:
            turn += 1
            yield from _of_message(said, at, turn, names)


def _names(said: Sequence[Said]) -> frozenset[str]:
    """Words that are capitalised amid sentences and never written small, nor behind "a"."""
    names: set[str] = set()
    others: set[str] = set()
    for passage in (p for one in said if one.role in TALKING for p in passages(one.text[:HEARD])):
        raw = TOKEN.findall(passage.text)
        others.update(token for token in raw if token[0].islower())
        for before, token, behind in zip([".", *raw], raw, [*raw[1:], "."], strict=False):
            if token[0].isupper():
                opens = before in STARTS and behind != "," and (behind in STOPWORDS or stem(behind) not in COMMON)
                (others if before in INDEFINITE else set() if opens else names).add(token.lower())
    return frozenset(name for name in names - others if _is_telling(name))


def _is_telling(word: str) -> bool:
    return len(word) > 1 and word not in STOPWORDS and stem(word) not in COMMON and not word.endswith(NO_NAME)


def _of_message(said: Sequence[Said], at: int, turn: int, names: frozenset[str]) -> Iterator[Statement]:
    text, reply = TELLS.sub(lambda hit: "·" * len(hit[0]), said[at].text), _reply(said, at)
    own, heard = set(own_sentences(text)), _is_note(reply)
    topics: frozenset[str] = frozenset()
    for passage in passages(text):
        if passage.text not in own or not _is_plain(passage):
            continue
        one = _statement(at, turn, passage, names, reply if heard else "")
        if one.values and not one.topics - one.names:
            one = replace(one, topics=one.topics | topics, content=one.content | topics)
        topics = one.topics
        if (one.content or one.values) and not _is_question(passage.text, heard):
            yield one


def _is_plain(passage: Passage) -> bool:
    """Short, and no code."""
    return not passage.code and len(passage.text) <= MOST_STATED and not CODE.search(passage.text)


def _is_question(text: str, heard: bool) -> bool:
    """A request in the form of a question is none where it was taken note of."""
    return text.rstrip("\"'”’) ").endswith(("?", "？")) and not (heard and REQUEST.match(text))


def _reply(said: Sequence[Said], at: int) -> str:
    """What the assistant says right behind a message."""
    return said[at + 1].text if at + 1 < len(said) and said[at + 1].role is Role.ASSISTANT else ""


def _is_note(reply: str) -> bool:
    """Short and no question: the assistant only takes note."""
    first = passages(reply)[:1] if len(reply) <= MOST_NOTED else ()
    return bool(first) and ("，" in first[0].text or not first[0].text.endswith(("?", "？")))


def _subjects(said: Sequence[Said]) -> frozenset[str]:
    """What the assistant took note of things under."""
    notes = (said[at].text for at in range(1, len(said)) if said[at].role is Role.ASSISTANT and _is_note(said[at].text))
    return frozenset(topic for note in notes for topic in _topics(note, frozenset()))


def _statement(at: int, turn: int, passage: Passage, names: frozenset[str], note: str) -> Statement:
    values, rest = _values(QUOTED.sub(" ", passage.text), names)
    tokens = _tokens(rest)
    content = frozenset(_content(tokens))
    stating = [
        clause
        for clause in CLAUSE.split(rest)
        if "§" in clause or not frozenset(_tokens(clause)).isdisjoint(values.get(Sort.NAME, ()))
    ]
    stated = frozenset(_topics(" , ".join(stating), names))
    topics = stated or frozenset(_topics(rest, names))
    beside = content - values.get(Sort.NAME, frozenset())
    most = (
        (MOST_PAIRS if max(beside, default="") > "\u2e80" else MOST_BESIDE)
        if CHANGES.search(passage.text) or OPENS_CHANGE.match(passage.text)
        else 0
    )
    bare = len(beside) <= most and not any(word < "\u2e80" for word in stated & beside)
    key = content.intersection(_content(_tokens(note)))
    key = key if len(key) > 1 else content
    return Statement(
        at, turn, passage.start, passage.end, passage.text, tokens, values, topics, content, key, bool(note), bare
    )


def _values(text: str, names: frozenset[str]) -> tuple[Mapping[Sort, frozenset[str]], str]:
    """The values of a sentence by their sorts, and the sentence with a mark in the place of all but names."""
    found: dict[Sort, frozenset[str]] = {}
    for sort, pattern in SORTS.items():
        hits = [hit[0] for hit in pattern.finditer(text)]
        if sort is Sort.NAME:
            hits = [hit for hit in hits if _names_something(hit, names)] + ZH_NAME.findall(text)
        else:
            text = pattern.sub(" § ", text)
        if hits:
            found[sort] = frozenset(stem(" ".join(hit.lower().split())) for hit in hits)
    return found, ZH_NAME.sub("§", text)


def _names_something(word: str, names: frozenset[str]) -> bool:
    """Capitalised amid a sentence here or elsewhere, or written like no word."""
    return word.lower() in names or (
        _is_telling(word.lower()) and not word[1:].islower() and "'" not in word and "’" not in word
    )


def _tokens(text: str) -> tuple[str, ...]:
    return tuple(stem(token) for token in TOKEN.findall(text.lower()))


def _content(tokens: Iterable[str]) -> Iterator[str]:
    for one in tokens:
        if one > "\u2e80":
            pairs = (one[i : i + 2] for i in range(len(one) - 1))
            yield from (pair for pair in pairs if not ZH_COMMON.intersection(pair) and pair not in ZH_GENERIC)
        elif _is_word(one):
            yield one


def _is_word(token: str) -> bool:
    return len(token) > 2 and token[0].isalpha() and token not in COMMON and not token.endswith(SHORTENED)


def _topics(text: str, names: frozenset[str]) -> Iterator[str]:
    """What stands behind "the", "my" or "for", or begins a clause and is told of; all of it, in Chinese."""
    tokens = _tokens(text)
    yield from (word for word in _content(tokens) if word > "\u2e80" or word in names)
    phrase: list[str] = []
    begun, certain = True, False
    for token in [*tokens, "."]:
        if begun and len(phrase) < LONGEST_PHRASE and _is_word(token) and not (phrase and token.endswith("ed")):
            phrase.append(token)
            continue
        if (certain or token in AFTER_SUBJECT) and token not in ATTRIBUTES and token not in ONES:
            yield from phrase
        certain = token in DETERMINERS or token in ASIDE
        begun, phrase = certain or token in BREAKS, []


# What takes the place of what


class _Book:
    """Hears the statements in order; `gone` are those whose force a later message took.

    `followed` says of others which later one is about the same: it may have taken their place in words not understood.
    """

    def __init__(self, statements: Sequence[Statement], subjects: Iterable[str]) -> None:
        self.gone: dict[Statement, Statement] = {}
        self.followed: dict[Statement, Statement] = {}
        self._by_word: dict[str, list[Statement]] = defaultdict(list)
        self._recent: list[Statement] = []
        self._said_by = Counter(word for one in statements for word in one.content)
        self._topics = frozenset(subjects).union(*(one.topics for one in statements))
        self._most = math.log(max(FEWEST_STATEMENTS, len(statements)))

    def hear(self, new: Statement) -> None:
        self.followed.update((old, new) for old in self._alike(new) if self._is_near(new, old))
        replaced = self._replaced_by(new)
        for old in replaced:
            new = _in_place_of(old, new)
        self.gone.update(dict.fromkeys(replaced, new))
        for word in new.content:
            self._by_word[word].append(new)
        self._recent.append(new)

    def _is_near(self, new: Statement, old: Statement) -> bool:
        shared = _shared(new, old)
        return self._weight(shared) >= LEAST_WEIGHT and not _is_of_another(new, old, shared)

    def _replaced_by(self, new: Statement) -> list[Statement]:
        found = [old for old in self._alike(new) if self._takes_place(new, old)]
        return found or self._said_just_before(new)

    def _alike(self, new: Statement) -> list[Statement]:
        """The newest statements in force that share a word."""
        seen: dict[Statement, None] = {}
        corrects = OPENS_CHANGE.match(new.text)
        for word in new.content:
            seen.update(dict.fromkeys(self._by_word[word][-MOST_COMPARED:]))
        newest = sorted(seen, key=lambda one: (one.message, one.start))[-MOST_COMPARED:]
        return [old for old in newest if old not in self.gone and (old.message != new.message or corrects)]

    def _weight(self, words: Iterable[str], *, pair: float = PAIR) -> float:
        """Of rare words more than of frequent ones, of topics more than of others."""
        return sum((1 - math.log(self._said_by[word] or 1) / self._most) * self._share(word, pair) for word in words)

    def _share(self, word: str, pair: float) -> float:
        """Every pair of a run of Chinese counts, so each weighs less."""
        return pair if word > "\u2e80" else 1.0 if word in self._topics else OTHER

    def _takes_place(self, new: Statement, old: Statement) -> bool:
        shared = _shared(new, old)
        weight = self._weight(shared)
        if weight < LEAST_WEIGHT or _is_of_another(new, old, shared):
            return False
        apart = min(self._weight((one.key & self._topics) - shared - one.names, pair=PAIR_APART) for one in (new, old))
        if weight < (LEAST_CHANGED if CHANGES.search(new.text) else LEAST_SHARED) * (weight + apart):
            return False
        return self._retells(new, old, shared) or (not _is_besides(new, old) and _differs(new, old, shared))

    def _retells(self, new: Statement, old: Statement, shared: frozenset[str]) -> bool:
        """What is stated of the subject stands in the correction, beside something else."""
        if ADDS.search(new.text):
            return False
        if any(
            values < new.values.get(sort, frozenset()) for sort, values in old.values.items() if sort is not Sort.NAME
        ):
            return True
        if not CHANGES.search(new.text):
            return False
        if old.names and (old.names - shared or old.names < new.names):
            return old.names < new.names and self._weight(shared & old.topics & new.topics - old.names) >= LEAST_WEIGHT
        return len(old.key) > 1 and old.key < new.content

    def _said_just_before(self, new: Statement) -> list[Statement]:
        """What a value without a subject corrects: the newest statement with a value of the sort."""
        beside = new.content - new.names
        if not new.bare or any(self._said_by[word] > 1 for word in beside):
            return []
        if not (new.values.keys() - CHOSEN or CHANGES.search(new.text) or OPENS_CHANGE.match(new.text)):
            return []  # a name alone corrects nothing
        corrects = bool(OPENS_CHANGE.match(new.text))
        for old in reversed(self._recent):
            if new.turn - old.turn > NEAR:
                break
            if (
                old not in self.gone
                and (old.message != new.message or corrects)
                and (_common(new, old) or _is_chosen_anew(new, old))
                and not _is_besides(new, old)
            ):
                return [old]
        return []


def _shared(new: Statement, old: Statement) -> frozenset[str]:
    """Content of both; of Chinese, which has no small words to tell by, where both state their values."""
    both = new.content & old.content
    return frozenset(word for word in both if word < "\u2e80" or word in new.topics or word in old.topics)


def _is_chosen_anew(new: Statement, old: Statement) -> bool:
    """ "No, the blue one", right behind a wish that was taken note of."""
    if new.turn - old.turn != 1 or not (
        new.heard and old.heard and new.content and old.content and ANYBODY.isdisjoint(new.tokens)
    ):
        return False
    return (
        bool((CHANGES if new.names else OPENS_CHANGE).search(new.text))
        and not (new.values.keys() | old.values.keys()) - CHOSEN
    )


def _in_place_of(old: Statement, new: Statement) -> Statement:
    """A statement that has the subject of the one it replaced, and no longer the values that it names as old ones."""
    values = {sort: found - old.values.get(sort, frozenset()) or found for sort, found in new.values.items()}
    return (
        replace(new, values=values, topics=new.topics | old.topics, content=new.content | old.topics)
        if new.bare
        else replace(new, values=values)
    )


def _own(one: Statement, other: Statement) -> Mapping[Sort, frozenset[str]]:
    """The values of a sentence that the other does not have; what both name is the subject."""
    own = {sort: values - other.values.get(sort, frozenset()) for sort, values in one.values.items()}
    return {sort: values for sort, values in own.items() if values}


def _common(new: Statement, old: Statement) -> Sort | None:
    """The sort of value that both state, and differently."""
    ours, theirs = _own(new, old), _own(old, new)
    both = min(ours.keys() & theirs.keys(), default=None)
    if both is Sort.NAME and min(ours) is not min(theirs):
        return None
    if both is Sort.AMOUNT and (units := _units(new.text)) and (others := _units(old.text)) and not units & others:
        return None
    return both


def _units(text: str) -> set[str]:
    return {name for name, pattern in UNITS.items() if pattern.search(text.lower())}


def _is_besides(new: Statement, old: Statement) -> bool:
    """Either is an addition to something, or holds at times only."""
    return any(pattern.search(one.text) for one in (new, old) for pattern in (ADDS, SOMETIMES))


def _differs(new: Statement, old: Statement, shared: frozenset[str]) -> bool:
    """Another value of the same sort, another choice, or none any more."""
    if sort := _common(new, old):
        return sort is Sort.NAME or not (_own(new, old).get(Sort.NAME) and _own(old, new).get(Sort.NAME))
    if ENDS.search(new.text) and not ENDS.search(old.text):
        return len(new.text) <= MOST_CHOSEN and (bool(old.values.keys() - {Sort.NAME}) or (new.heard and old.heard))
    return _is_other_choice(new, old, shared)


def _is_other_choice(new: Statement, old: Statement, shared: frozenset[str]) -> bool:
    """Two short wishes that were taken note of, each with something of its own."""
    wishes = new.heard and old.heard and max(len(new.text), len(old.text)) <= MOST_CHOSEN
    if (
        not wishes
        or (_own(new, old).keys() | _own(old, new).keys()) - CHOSEN
        or (ENDS.search(new.text) and ENDS.search(old.text))
    ):
        return False
    if FORBIDS.search(new.text) and FORBIDS.search(old.text) and not CHANGES.search(new.text):
        return False
    mine, theirs = new.content | _words_of(new), old.content | _words_of(old)
    return bool(mine - theirs and theirs - mine) and _is_about_a_thing(new, shared & old.key & new.key)


def _is_about_a_thing(new: Statement, about: frozenset[str]) -> bool:
    """Of a person much may be true at once, unless a change is told of."""
    if about & new.names and not CHANGES.search(new.text):
        return bool(about & new.topics - new.names)
    return bool(about)


def _words_of(one: Statement) -> frozenset[str]:
    return frozenset(value for values in one.values.values() for value in values)


def _is_of_another(new: Statement, old: Statement, shared: frozenset[str]) -> bool:
    """A part of the subject ("the deposit for the stand"), or another of its sort ("the return train")."""
    mine, theirs = set(_qualifiers(new, shared)), set(_qualifiers(old, shared))
    ours, others = _before_run(new, shared), _before_run(old, shared)
    return bool(
        mine - old.content or (theirs - new.content and mine) or (ours and others and not ours & others)
    ) or _is_numbered_otherwise(new, old, shared)


def _is_numbered_otherwise(new: Statement, old: Statement, shared: frozenset[str]) -> bool:
    """ "Office one" and "office two", or "server 1" and "server 2" where a further number is stated of each."""
    mine, theirs = (
        {(hit[1], hit[2]) for hit in NUMBERED.finditer(one.text.lower()) if hit[1] in shared} for one in (new, old)
    )
    return any(word == other and number != another for word, number in mine for other, another in theirs)


def _before_run(one: Statement, shared: frozenset[str]) -> set[str]:
    """The characters before what is shared in Chinese, where they say something."""
    runs = (re.findall(f"([{CJK}]){pair}", one.text) for pair in shared if pair > "\u2e80")
    return {
        before
        for found in runs
        for before in found
        if before not in ZH_COMMON - ZH_WAYS and not any(before == pair[0] for pair in shared)
    }


def _qualifiers(one: Statement, shared: frozenset[str]) -> Iterator[str]:
    """Words before what is shared: "deposit" in "the deposit for the stand", "return" in "the return train"."""
    tokens = ("", "", *one.tokens)
    for at, (before, token) in enumerate(itertools.pairwise(tokens), 1):
        if not _is_word(before) or before in shared or before in one.names:
            continue
        definite, opens = tokens[at - 2] in DETERMINERS, not tokens[at - 2] or tokens[at - 2] in BREAKS
        behind = [word for word in tokens[at + 1 : at + 4] if word not in DETERMINERS][:2]
        part = token in ("of",) or (token in OF and (definite or opens or tokens[at - 2] in INDEFINITE))
        if (token in shared and definite) or (part and one.values.keys() - {Sort.NAME} and shared.intersection(behind)):
            yield before


# What the assistant says back


def _echoes(said: Sequence[Said], old: Statement, by: Statement) -> Iterator[Outdated]:
    """Short sentences of the reply that repeat what is no longer in force."""
    values = _words_of(old) - _words_of(by) or (old.key - by.content or old.key if old.heard else frozenset())
    for passage in passages(_reply(said, old.message)[:HEARD]):
        low = passage.text.lower()
        if len(low) <= MOST_ECHOED and any(value in low for value in values):
            yield Outdated(old.message + 1, passage.start, passage.end, by.message)
