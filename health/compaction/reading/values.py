"""Which sentences are no longer in force, since the user changed, corrected or withdrew what they state.

A sentence states a value: a time, a day, an amount, an address, a name, or what is chosen for something. A later one
about the same subject with another value of the same sort takes its place; so does one without a subject right
behind it. What is added ("also", "a second one") replaces nothing, nor does what is said of another subject.

    > The dentist is at 8:50.                 outdated
    > They moved the dentist to 10:15.        in force
    > The hairdresser is at 16:25.            in force

The subject is what two sentences share and few others have. Nothing is understood: when in doubt both stand.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from health.compaction.reading.in_place import begin_with_the_same, go_on_alike, tell_of_another
from health.compaction.reading.lasting import lasts
from health.compaction.reading.ledger_patterns import is_errand
from health.compaction.reading.signs import is_question
from health.compaction.reading.text import STOPWORDS, remembered
from health.compaction.reading.two_things import (
    begin_alike,
    counts_something_else,
    ends_another,
    is_of_another,
    of_two_speakers,
)
from health.compaction.reading.undoing import (
    MOST_CHOSEN,
    changes_a_part,
    common_sort,
    is_other_choice,
    people,
    report_two_deeds,
    says_instead,
    tells_hour,
    undoes,
)
from health.compaction.reading.value_patterns import (
    ANYBODY,
    CHANGES,
    CHOSEN,
    DETERMINERS,
    OPENS_CHANGE,
    PAIRS,
    TURNS,
    Sort,
    units_of,
)
from health.compaction.reading.value_statements import Said, Statement, statements, subjects
from health.compaction.reading.value_words import CJK_BEGINS, outdated_words

# Of the newest statements with a word, so many are looked up, and so many that share most are compared: time stays
# linear in what was said.
MOST_LOOKED_UP, MOST_COMPARED = 64, 8
DIGITS = 9  # of a sum of weights
NEAR = 2  # of the last messages of the user: a correction without a subject belongs to one of these
# What two sentences share must weigh so much, and be this part of what they are about; less, where a change is told.
LEAST_WEIGHT, LEAST_SHARED, LEAST_CHANGED = 0.4, 0.45, 0.4
# From this part of all that either says on it is sure that both tell of one thing.
LEAST_SURE = 0.45
# What is shared weighs at least this part of the rest of a rule, and of anything else that was said.
RULE_SHARED, OTHER_SHARED = 0.5, 0.25
FEWEST_STATEMENTS = 40  # among fewer every word is rare
# A pair of Chinese characters weighs less than a word, one apart may be no word at all; so do words of no subject.
PAIR, PAIR_APART, OTHER = 0.7, 0.2, 0.5

__all__ = ["Book", "Said", "heard"]


def heard(said: Sequence[Said]) -> Book:
    """What was stated, in order, and what took the place of what."""
    book = Book(found := list(statements(said)), subjects(said))
    for statement in found:
        book.hear(statement)
    return book


# What takes the place of what


class _Weights(dict[str, float]):
    """Of rare words more than of frequent ones, of topics more than of others; a pair of Chinese for `pair`."""

    def __init__(self, words: Mapping[str, float], pair: float) -> None:
        super().__init__({word: weight * (pair if word > CJK_BEGINS else 1.0) for word, weight in words.items()})
        self._pair = pair

    def __missing__(self, word: str) -> float:
        return self._pair if word > CJK_BEGINS else 1.0

    def of(self, words: Iterable[str]) -> float:
        return math.fsum(map(self.__getitem__, words))  # the same in whatever order a set has them


class Book:
    """Hears the statements in order. A later message took the force of those that are `gone`, each with what took it;
    it may have taken that of the `doubted`, which share little with it: these stand with it, as long as there is room.
    """

    def __init__(self, heard: Sequence[Statement], known: Iterable[str]) -> None:
        self._stated = tuple(heard)
        self.gone: dict[Statement, Statement] = {}
        self.doubted: dict[Statement, Statement] = {}
        self._alike_later: dict[Statement, list[Statement]] = defaultdict(list)
        self._changed_next: dict[Statement, Statement] = {}
        self._by_word: dict[str, list[int]] = defaultdict(list)
        self._by_sort: dict[Sort, list[Statement]] = defaultdict(list)
        self._recent: list[Statement] = []
        self._said_by = Counter(word for one in heard for word in one.content)
        self._topics = frozenset(known).union(*(one.topics for one in heard))
        most = math.log(max(FEWEST_STATEMENTS, len(heard)))
        shares = {word: 1.0 if word > CJK_BEGINS or word in self._topics else OTHER for word in self._said_by}
        weights = {word: (1 - math.log(n) / most) * shares[word] for word, n in self._said_by.items()}
        self._weights, self._apart = _Weights(weights, pair=PAIR), _Weights(weights, pair=PAIR_APART)

    def holding(self) -> Iterator[Statement]:
        """What holds, as far as it is a value or the assistant took note of it. What asks for one thing is over."""
        held = (one for one in self._stated if one.noted or one.values)
        return (one for one in held if one not in self.gone and not is_errand(one.text))

    def followed(self) -> Iterator[tuple[Statement, Statement]]:
        """Others, each with the last one about the same: it may have taken their place in words not understood."""
        for old in self._recent:
            if old in self.doubted and old not in self.gone:
                yield old, self.doubted[old]
                continue
            later = (new for new in reversed(self._alike_later.get(old, ())) if self._is_near(new, old))
            if old not in self.gone and (new := next(later, self._changed_next.get(old))):
                yield old, new

    def hear(self, new: Statement) -> None:
        alike = self._alike(new)
        for old in alike:
            self._alike_later[old].append(new)
        replaced = self._replaced_by(new, alike)
        sure = [old for old in replaced if self._is_sure(new, old)]
        for old in replaced:
            new = _in_place_of(old, new)
        self.gone.update(dict.fromkeys(sure, new))
        self.doubted.update((old, new) for old in replaced if old not in self.gone)
        self._may_change_another(new, [*replaced, *alike])
        for word in self._said_again(new):
            self._by_word[word].append(len(self._recent))
        self._recent.append(new)

    def _said_again(self, one: Statement) -> list[str]:
        """Its words that stand in others too."""
        return [word for word in one.content if self._said_by[word] > 1]

    def _may_change_another(self, new: Statement, alike: Sequence[Statement]) -> None:
        """ "9 weeks, the doctor says": what is like nothing before may tell the newest value of its sort anew."""
        sort = min(new.values, default=Sort.NAME)
        before = self._by_sort[sort][-MOST_COMPARED:]
        self._by_sort[sort].append(new)
        if sort is Sort.NAME or any(one in self.gone or self._is_near(new, one) for one in alike):
            return
        same = (old for old in reversed(before) if old not in self.gone and old.message != new.message)
        if old := next((old for old in same if common_sort(new, old) is sort), None):
            self._changed_next[old] = new

    def _is_near(self, new: Statement, old: Statement) -> bool:
        shared = _shared(new, old)
        if self._weights.of(shared) < LEAST_WEIGHT or is_of_another(new, old, shared):
            return False
        return not self._is_beside(old, shared)

    def _is_beside(self, old: Statement, shared: frozenset[str]) -> bool:
        """What says much else than what is shared, most of all a rule: a word in common takes no force of it."""
        other = self._apart.of(old.content - shared - old.names)
        least = RULE_SHARED if old.signs.binds or lasts(old.text) else OTHER_SHARED
        return self._weights.of(shared) < least * other

    def _replaced_by(self, new: Statement, alike: Sequence[Statement]) -> list[Statement]:
        found = [old for old in alike if self._takes_place(new, old)]
        found = found or self._named_in(new) or self._said_just_before(new)
        return [] if found and self._could_mean_another(new, found[-1], alike) else found

    def _is_sure(self, new: Statement, old: Statement) -> bool:
        """Whether the old one surely holds no more: the assistant took note of both, a change is told in so many words,
        or both say hardly anything else. Of a person much may be told."""
        if new.noted and old.noted:
            return True
        telling = [one for one in (new, *new.clauses) if self._stands_for(one, old)]
        if not telling:
            corrects = new.signs.closes or (new.signs.opens and new.has_value)
            return corrects or (new.heard and old.heard) or bool(outdated_words(new.text))
        return TURNS.search(new.text.lower()) is not None or any(
            (one.is_part and begin_with_the_same(one, old))
            or not (old.content - one.content).isdisjoint(one.aside)
            or begin_alike(one, old)
            or says_instead(one, old)
            or undoes(one, old)
            or self._is_mostly_shared(one, old)
            for one in telling
        )

    def _is_mostly_shared(self, new: Statement, old: Statement) -> bool:
        shared = _shared(new, old)
        weight = self._weights.of(shared)
        apart = max(self._apart.of(one.content - shared - one.names) for one in (new, old))
        if apart and common_sort(new, old) is Sort.AMOUNT and units_of(new.text).isdisjoint(units_of(old.text)):
            return False  # numbers of what?
        return weight >= LEAST_SURE * (weight + apart)

    def _could_mean_another(self, new: Statement, old: Statement, alike: Iterable[Statement]) -> bool:
        """ "The office opens at 8:00", where one in Bonn and one in Kiel were told of."""
        others = (one for one in alike if one is not old and common_sort(new, one) and self._is_near(new, one))
        same = (one for one in others if _shared(new, one) == _shared(new, old))
        return any(common_sort(old, one) or is_of_another(one, old, _shared(one, old)) for one in same)

    def _alike(self, new: Statement) -> list[Statement]:
        """The statements in force that share most, in order."""
        totals: dict[int, float] = defaultdict(float)
        for word in self._said_again(new):
            weight = self._weights[word]
            for at in self._by_word[word][-MOST_LOOKED_UP:]:
                totals[at] += weight
        # The same in whatever order a set has its words.
        near = [(round(total, DIGITS), at) for at, total in totals.items() if total > LEAST_WEIGHT - 0.1**DIGITS]
        corrects = new.signs.opens
        alike = (
            at
            for _, at in sorted(near, reverse=True)
            if (old := self._recent[at]) not in self.gone and (old.message != new.message or corrects)
        )
        return [self._recent[at] for at in sorted(islice(alike, MOST_COMPARED))]

    def _takes_place(self, new: Statement, old: Statement) -> bool:
        if not (is_question(new.text) and new.clauses) and self._stands_for(new, old):
            return True
        return any(self._stands_for(one, old) for one in new.clauses if not one.content.isdisjoint(old.content))

    def _stands_for(self, new: Statement, old: Statement) -> bool:
        shared = _shared(new, old)
        may_be = _may_take_place(new, old, shared) or self._names_more(new, old, shared) or says_instead(new, old)
        if not (may_be and self._is_near(new, old)):
            return False
        if (new.signs.changes and begin_alike(new, old)) or (new.is_part and go_on_alike(new, old, shared)):
            return not tell_of_another(new, old)
        if shared <= new.names and max(shared) > CJK_BEGINS and not new.signs.changes:
            return False  # 李先生 may do much else
        weight = self._weights.of(shared)
        apart = min(self._apart.of((one.key & self._topics) - shared - one.names) for one in (new, old))
        least = LEAST_CHANGED if new.signs.changes else LEAST_SHARED
        return weight >= least * (weight + apart) and not tell_of_another(new, old)

    def _names_more(self, new: Statement, old: Statement, shared: frozenset[str]) -> bool:
        """The names of the old one and another, in a change of the same thing, or beside all that was told of it."""
        if not old.names < new.names or not old.names or new.signs.adds:
            return False
        if not new.signs.changes and not {*filter(str.isalpha, old.tokens)} - STOPWORDS <= {*new.tokens}:
            return False
        return self._weights.of(shared - old.names) >= LEAST_WEIGHT

    def _named_in(self, new: Statement) -> list[Statement]:
        """ "Not 5, I meant 3": the only statement with the value that is no more."""
        left = outdated_words(new.text)
        recent = islice(reversed(self._recent), MOST_LOOKED_UP if left else 0)
        named = [old for old in recent if old not in self.gone and left <= old.words | old.content]
        return [old for old in named if common_sort(new, old) and len(named) == 1 and not _is_besides(new, old)]

    def _said_just_before(self, new: Statement) -> list[Statement]:
        """What a value without a subject corrects: the newest statement with a value of the sort."""
        if not new.bare or any(self._said_by[word] > 1 for word in new.content - new.names):
            return []
        corrects = new.signs.opens
        if not (new.values.keys() - CHOSEN or corrects or new.signs.changes or new.signs.closes):
            return []  # a name alone corrects nothing
        recent = islice(reversed(self._recent), MOST_LOOKED_UP)
        near = (old for old in recent if new.turn - old.turn <= NEAR or _ask_anew(new, old))
        for old in sorted(near, key=lambda old: not _ask_alike(new, old)):
            if (
                old not in self.gone
                and (old.message != new.message or corrects)
                and (common_sort(new, old) or _is_chosen_anew(new, old))
                and not (_is_besides(new, old) or of_two_speakers(new, old))
                and not changes_a_part(new, old, new.names)
                and (corrects or not new.has_value or new.names <= old.names | old.content)
                and (corrects or not (tell_of_another(new, old) or counts_something_else(new.text, old.text)))
            ):
                return [old]
        return []


@remembered(PAIRS)
def _may_take_place(new: Statement, old: Statement, shared: frozenset[str]) -> bool:
    """By what the two say, however much what they share weighs."""
    if changes_a_part(new, old, shared) or (not common_sort(new, old) and report_two_deeds(new, old)):
        return False
    if _retells(new, old, shared):
        return True
    return _differs(new, old, shared) and not (_says_more(old, new) or _is_besides(new, old))


def _retells(new: Statement, old: Statement, shared: frozenset[str]) -> bool:
    """What is stated of the subject stands in the correction, beside something else."""
    if new.signs.condition != old.signs.condition:
        return False
    told = old.has_value and any(
        sort is not Sort.NAME and found < new.values.get(sort, frozenset()) for sort, found in old.values.items()
    )
    if not told and (old.names - shared or (old.names and old.names < new.names)):
        return False
    if new.has_value and not old.values and not told:
        return False
    many = len(old.key) > 1 or (old.key and new.signs.contrasts)
    told = told or (bool(many) and old.key < new.content and new.signs.changes)
    return told and not new.signs.adds


def _says_more(old: Statement, new: Statement) -> bool:
    """A time beside the day, which may still hold where only another day is told."""
    told = new.values.keys() | ({Sort.TIME} if tells_hour(new, old) else set())
    return bool((old.values.keys() - told - CHOSEN) and (old.values.keys() & new.values.keys() - CHOSEN))


@remembered(PAIRS)
def _shared(new: Statement, old: Statement) -> frozenset[str]:
    """Content of both; of Chinese, which has no small words to tell by, where both state their values."""
    both = new.content & old.content
    return frozenset([word for word in both if word < CJK_BEGINS or word in new.topics or word in old.topics])


def _is_chosen_anew(new: Statement, old: Statement) -> bool:
    """ "No, the blue one", right behind a wish that was taken note of; "use spaces instead" behind "use tabs"."""
    told = (new.heard and old.heard) or _ask_anew(new, old)
    if not (told and new.content and old.content and ANYBODY.isdisjoint(new.tokens)):
        return False
    if new.turn - old.turn != 1 and not _ask_alike(new, old):
        return False
    low = new.text.lower()
    return (
        bool((CHANGES if new.names else OPENS_CHANGE).search(low) or new.signs.closes)
        and not (new.values.keys() | old.values.keys()) - CHOSEN
    )


def _ask_alike(new: Statement, old: Statement) -> bool:
    return new.tokens[:1] == old.tokens[:1] and DETERMINERS.isdisjoint(new.tokens[:1])


def _ask_anew(new: Statement, old: Statement) -> bool:
    """ "Use spaces instead", however much was said since "use tabs"."""
    return new.signs.closes and not (new.values or old.values) and _ask_alike(new, old)


@remembered(PAIRS)
def _in_place_of(old: Statement, new: Statement) -> Statement:
    """A statement that has the subject of the one it replaced, and no longer the values that it names as old ones."""
    values = {sort: found - old.values.get(sort, frozenset()) or found for sort, found in new.values.items()}
    told = replace(new, values=values)
    return replace(told, topics=new.topics | old.topics, content=new.content | old.topics) if new.bare else told


def _is_besides(new: Statement, old: Statement) -> bool:
    """Either is an addition to something, or holds at times only, or tells what once was."""
    mine, theirs = new.signs, old.signs
    if mine.past and not mine.changes:
        return True
    if mine.condition != theirs.condition:
        return True
    # "We have a table at Luigi's" is ended like any other.
    return mine.adds or (theirs.adds and not mine.ends)


def _differs(new: Statement, old: Statement, shared: frozenset[str]) -> bool:
    """Another value of the same sort, another choice, or none any more."""
    if sort := common_sort(new, old):
        return sort is Sort.NAME or not (people(new, old) and people(old, new))
    if undoes(new, old):
        return True
    if new.signs.ends and not old.signs.ends:
        if ends_another(new, old, shared):
            return False
        told = (new.heard and old.heard) or new.signs.changes or new.is_part or len(shared) > 1
        held = old.has_value or old.signs.binds or told
        if held and len(new.text) <= MOST_CHOSEN:
            return True
    return is_other_choice(new, old, shared)
