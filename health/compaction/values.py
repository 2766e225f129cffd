"""Which sentences are no longer in force, since the user changed, corrected or withdrew what they state.

A sentence states a value: a time, a day, a date, an amount, a name, or a choice among things. A later sentence about
the same subject with another value of the same sort takes its place; so does one without a subject right behind it
("No, 14:10."). What is added ("also", "a second one") replaces nothing, nor does what is said of another subject.

    > The ferry leaves at 11:20.           outdated
    > I rebooked the ferry, 14:10.         in force
    > The train leaves at 09:35.           in force

The subject is what two sentences share and few others have. Nothing is understood: when in doubt both stand.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from health.compaction.quoting import own
from health.compaction.stopwords import STOPWORDS
from health.compaction.text import Passage, passages
from health.compaction.units import WRITTEN, Role, Unit
from health.compaction.value_words import (
    ADDS,
    ATTRIBUTES,
    BINDS,
    CHANGES,
    CODE,
    COMMON,
    DIRECTS,
    ENDS,
    LATIN_NAME,
    LOWER,
    NO_NAME,
    OF_SOMETHING,
    ORDERS,
    PART,
    POINTS_BACK,
    REQUESTS,
    REVOKES,
    SORTS,
    WORD,
    ZH_COMMON,
    ZH_FUNCTION,
    ZH_NAME,
    Sort,
)

# Nobody states a value in more words; what is longer tells a story.
MOST_CHARS = 240
# Of the statements that share a word, so many of the newest are compared: time stays linear in what was said.
MOST_COMPARED = 48
# A correction without a subject belongs to what was stated in one of the last so many messages of the user.
NEAR = 1
# What is so short needs no other sign that it corrects what was said just before.
MOST_OF_A_SCRAP = 20
LEAST_SHARED = 0.4
MOST_OF_A_CHOICE = 120
# What says a value back is short.
LONGEST_ECHO = 160


class Said(NamedTuple):
    role: Role
    text: str


class Outdated(NamedTuple):
    """Characters of a sentence of a message that the message `by` took the force of."""

    message: int
    start: int
    end: int
    by: int


@dataclass(frozen=True, eq=False)
class Statement:
    """A sentence by the user that may state a value. `turn` counts the messages of the user."""

    message: int
    turn: int
    start: int
    end: int
    text: str
    ordinary: frozenset[str]

    @cached_property
    def values(self) -> Mapping[Sort, frozenset[str]]:
        return _values(self.text, self.ordinary)

    @cached_property
    def words(self) -> frozenset[str]:
        """What it may be about: words that are no value's but a name's, and none that say little."""
        return frozenset(_words(self.text))

    @cached_property
    def named(self) -> Mapping[str, str]:
        """By each word that it may be about the one right before it, if that says something too."""
        found: dict[str, str] = {}
        before, end = "", -1
        for hit in WORD.finditer(self.text):
            word = _stem(hit[0].lower())
            found[word] = before if hit.start() - end == 1 and before in self.words else ""
            before, end = word, hit.end()
        return found

    @property
    def sort(self) -> Sort:
        return min(self.values, default=Sort.CHOICE)


def states_a_value(sentence: str) -> bool:
    """A time, a date, a day, an amount, or a name inside the sentence."""
    return len(sentence) <= MOST_CHARS and any(sort is not Sort.NAME for sort in _values(sentence, frozenset()))


def outdated(said: Sequence[Said]) -> list[Outdated]:
    """The sentences that are no longer in force, in order. Linear in what was said, but for sentences alike."""
    return _outdated(said, _heard(said))


def _heard(said: Sequence[Said]) -> _Book:
    statements = list(_statements(said))
    book = _Book(statements)
    for statement in statements:
        book.hear(statement)
    return book


def _outdated(said: Sequence[Said], book: _Book) -> list[Outdated]:
    found = [Outdated(old.message, old.start, old.end, by) for old, by in book.gone.items()]
    return sorted([*found, *_echoes(said, book.gone)])


def _statements(said: Sequence[Said]) -> Iterator[Statement]:
    turn = 0
    ordinary = frozenset(word for one in said for word in LOWER.findall(one.text))
    for at, one in enumerate(said):
        if one.role is not Role.USER:
            continue
        turn += 1
        typed = {passage.text for passage in passages(own(one.text))}
        for passage in passages(one.text):
            if passage.text in typed and _is_plain(passage):
                yield Statement(at, turn, passage.start, passage.end, passage.text, ordinary)


def _is_plain(passage: Passage) -> bool:
    """Short, and no code."""
    return not passage.code and len(passage.text) <= MOST_CHARS and not CODE.search(passage.text)


class _Book:
    """Hears the statements in order; `gone` are those whose force a later message took.

    `followed` says of others which later one is about the same: it may have taken their place in words not understood.
    """

    def __init__(self, statements: Sequence[Statement]) -> None:
        self.gone: dict[Statement, int] = {}
        self.followed: dict[Statement, Statement] = {}
        self._by_word: dict[str, list[Statement]] = defaultdict(list)
        self._recent: list[Statement] = []
        self._said_by = Counter(word for one in statements for word in one.words)
        self._count = max(2, len(statements))

    def _weight(self, word: str) -> float:
        """In shares of the most that a word can weigh."""
        return math.log(self._count / self._said_by[word]) / math.log(self._count)

    def hear(self, new: Statement) -> None:
        if not is_question(new.text):
            for old in self._replaced_by(new):
                if old not in self.gone:
                    self.gone[old] = new.message
            for word in new.words:
                self._by_word[word].append(new)
            self._recent.append(new)

    def _replaced_by(self, new: Statement) -> list[Statement]:
        near = self._about_the_same(new)
        if new.sort is not Sort.CHOICE or _is_wish(new):
            self.followed.update((old, new) for old in near)
        if ADDS.search(new.text) and not (CHANGES.search(new.text) or _is_ending(new)):
            return []
        found = [old for old in near if self._takes_place(new, old)]
        return found or self._said_just_before(new, bool(near))

    def _about_the_same(self, new: Statement) -> list[Statement]:
        """Earlier statements that share what few others have, those that share most of it."""
        scores: dict[Statement, float] = defaultdict(float)
        for word in new.words:
            for old in self._by_word[word][-MOST_COMPARED:]:
                if old.message != new.message and old not in self.gone:
                    scores[old] += self._weight(word)
        best = max(scores.values(), default=0.0)
        return [old for old, score in scores.items() if score >= max(LEAST_SHARED, 0.75 * best)]

    def _takes_place(self, new: Statement, old: Statement) -> bool:
        if _is_another(new, old):
            return False
        changed, stated = _own_sort(new, old), _own_sort(old, new)
        if stated is Sort.CHOICE and changed in new.values and changed in old.values:
            stated = changed  # a correction that names what it corrects
        if {changed, stated} == {Sort.NAME, Sort.CHOICE}:
            changed = stated = Sort.CHOICE  # a word that opens a sentence may be a name or not
        if changed is not stated:
            return changed is Sort.CHOICE and _is_ending(new) and not _is_ending(old)
        if changed < Sort.NAME:
            return not _is_part(new, old)
        return not _is_further_wish(new, old) and (changed is Sort.NAME or _is_other_choice(new, old))

    def _said_just_before(self, new: Statement, has_subject: bool) -> list[Statement]:
        """What a value without a subject corrects: the newest statement with a value of the sort."""
        if has_subject or new.sort is Sort.CHOICE or (new.sort is Sort.NAME and not CHANGES.search(new.text)):
            return []
        if (new.words or len(new.text) > MOST_OF_A_SCRAP) and (
            OF_SOMETHING.search(new.text) or len(new.words) > 3 or not POINTS_BACK.search(new.text)
        ):
            return []
        for old in reversed(self._recent):
            if new.turn - old.turn > NEAR:
                break
            if old.message != new.message and old.sort is new.sort and old not in self.gone:
                return [old] if old.values[old.sort] != new.values[new.sort] else []
        return []


def _own_sort(one: Statement, other: Statement) -> Sort:
    """Of what it states and the other does not; what both name is the subject."""
    return min(
        (sort for sort, values in one.values.items() if values - other.values.get(sort, frozenset())),
        default=Sort.CHOICE,
    )


def _is_another(new: Statement, old: Statement) -> bool:
    """Another one of the same name: "the return train" is not "the outbound train"."""
    return any(
        before and earlier and before != earlier and before not in old.words and earlier not in new.words
        for word, before in new.named.items()
        if (earlier := old.named.get(word))
    )


def _is_part(new: Statement, old: Statement) -> bool:
    """Something of it: "check-in for the ferry" is not the ferry."""
    heads = {hit[1] for hit in PART.finditer(new.text) if _stem(hit[2].lower()) in old.words}
    return any(_stem(head) in new.words and head not in ATTRIBUTES for head in heads)


def _is_other_choice(new: Statement, old: Statement) -> bool:
    """Of two wishes about the same the later counts; what binds for ever ends only in so many words."""
    if BINDS.search(old.text) and not REVOKES.search(new.text):
        return False
    return (
        _is_wish(new)
        and _is_short(new)
        and _is_short(old)
        and bool(new.words - old.words)
        and bool(old.words - new.words)
    )


def _is_wish(one: Statement) -> bool:
    """Something decided, wished or changed, not just told."""
    return bool(CHANGES.search(one.text) or DIRECTS.search(one.text)) and not one.text.endswith(("?", "？"))


def _is_further_wish(new: Statement, old: Statement) -> bool:
    return bool(ORDERS.search(new.text) or ORDERS.search(old.text))


def _is_ending(one: Statement) -> bool:
    return bool(ENDS.search(one.text)) and _is_short(one)


def _is_short(one: Statement) -> bool:
    return len(one.text) <= MOST_OF_A_CHOICE


def is_question(text: str) -> bool:
    """A request in the form of a question is none."""
    return text.rstrip("\"'”’) ").endswith(("?", "？")) and not REQUESTS.match(text)


def _values(text: str, ordinary: frozenset[str]) -> Mapping[Sort, frozenset[str]]:
    found: dict[Sort, frozenset[str]] = {}
    rest = text
    for sort, pattern in SORTS.items():
        hits = frozenset(" ".join(hit[0].lower().rstrip(".,").split()) for hit in pattern.finditer(rest))
        if hits:
            found[sort] = hits
            rest = pattern.sub(" ", rest)
    names = frozenset(_names(rest)) - ordinary
    return found | ({Sort.NAME: names} if names else {})


def _names(text: str) -> Iterator[str]:
    """Capitalised words that are no ordinary ones."""
    for hit in LATIN_NAME.finditer(text):
        word = hit[0].lower()
        if word in STOPWORDS or word in COMMON or len(word) < 2:
            continue
        if hit.start() or not word.endswith(NO_NAME):
            yield word
    for hit in ZH_NAME.finditer(text):
        yield hit[0]


def _words(text: str) -> Iterator[str]:
    for pattern in SORTS.values():
        text = pattern.sub(" ", text)
    for hit in WORD.finditer(text):
        word = hit[0].lower()
        if word[0] > "\u2e80":
            yield from (word[at : at + 2] for at in range(len(word) - 1) if _is_word(word[at : at + 2]))
        elif len(word) > 2 and word not in STOPWORDS and word not in COMMON:
            yield _stem(word)


def _stem(word: str) -> str:
    return word.removesuffix("'s").removesuffix("’s").rstrip("s")


def _is_word(pair: str) -> bool:
    return not ZH_FUNCTION.intersection(pair) and not ZH_COMMON.issuperset(pair)


def _echoes(said: Sequence[Said], gone: Mapping[Statement, int]) -> Iterator[Outdated]:
    """What the assistant said back right after: sentences with a value that is no longer in force."""
    for old, by in gone.items():
        at = old.message + 1
        if at >= len(said) or said[at].role is not Role.ASSISTANT:
            continue
        values = {value for values in old.values.values() for value in values} or old.words
        for passage in passages(said[at].text[:2000]):
            low = passage.text.lower()
            if len(low) <= LONGEST_ECHO and any(value in low for value in values):
                yield Outdated(at, passage.start, passage.end, by)


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
