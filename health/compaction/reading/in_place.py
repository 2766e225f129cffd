"""Words that stand in each other's place in two sentences: then they tell of two things, whatever the things are.

    > Retry three times on reads.
    > Retry five times on writes.           another thing
    > Retry four times on reads.            the first one, changed

A change tells one thing anew. Where beside the value something else has another in its place, two things were told; of
two wishes without a value ("write the digest as a list") what differs at the end is what is wished.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from health.compaction.reading.text import STOPWORDS, remembered
from health.compaction.reading.two_things import NOBODY
from health.compaction.reading.value_patterns import (
    ATTRIBUTES,
    BREAKS,
    CHANGES,
    PAIRS,
    SENTENCES,
    ZH_CHANGING,
    ZH_COMMON,
    ZH_MEASURES,
)
from health.compaction.reading.value_statements import Statement
from health.compaction.reading.value_words import CJK_BEGINS, is_word

VALUE = "§"
# What names a thing has so many words at most, or characters of Chinese.
LONGEST, ZH_LONGEST = 3, 4
ROWS = tuple(
    frozenset(row.split())
    for row in (
        "left right 左 右",
        "front rear back 前 后",
        "morning noon afternoon evening night breakfast lunch dinner supper bedtime",
        "up down 上 下",
        "to from out back home 去 回 返",
    )
)
# Before what a sentence is of stand fewer words, or characters of Chinese.
FEW, ZH_FEW = 2, 4
LISTS = frozenset((",", "and", "or", "、", "和"))
ENDS_CLAUSE = BREAKS.union("!?，。：；、！？")


class Gap(NamedTuple):
    """What each of two sentences says between the same words, in their clause; `before` and `after` are these, empty
    where few."""

    runs: tuple[Sequence[str], Sequence[str]]
    before: Sequence[str]
    after: Sequence[str]

    @property
    def is_last(self) -> bool:
        """What a wish has at its end is what is wished."""
        return not self.after or self.after[0] in ENDS_CLAUSE

    @property
    def is_beside_value(self) -> bool:
        """Where sentences have their verbs."""
        return VALUE in (*self.before[-1:], *self.after[:1])

    @property
    def may_name_things(self) -> bool:
        """By their length, and that nobody is told of."""
        return all(map(_may_be_a_name, self.runs))


class Differences(NamedTuple):
    """How much of two sentences differs, and of it what says of which thing they tell: of that what is not the last of
    it, and what is not the end of the sentences.
    """

    gaps: int
    apart: int
    within: int
    begins: int


def tell_of_another(new: Statement, old: Statement) -> bool:
    """Whether more differs than what is told of one thing."""
    found = _differences(new.tokens, old.tokens)
    if not (new.has_value and old.has_value):
        denied = new.signs.forbids and not old.signs.forbids
        return (found.gaps > 1 and found.within > 0) or (denied and found.begins > 0)
    return (found.begins if new.is_part else found.apart) > 0 or (
        not new.signs.changes and _say_which(_pieces(new.tokens), _pieces(old.tokens))
    )


def go_on_alike(new: Statement, old: Statement, shared: Collection[str]) -> bool:
    """ "The stage …", "the main stage …": both begin with the same thing, as far as they say which."""
    for word in shared:
        mine, theirs = _before(new.tokens, word), _before(old.tokens, word)
        few = len(mine) + len(theirs) < (ZH_FEW if word > CJK_BEGINS else FEW)
        if mine == theirs or (few and not (mine and theirs)):
            return True
    return False


def begin_with_the_same(new: Statement, old: Statement) -> bool:
    """ "Users log in …": the first word of each that says something."""
    mine, theirs = (next(filter(_says, _pieces(one.tokens)), "") for one in (new, old))
    return mine == theirs != ""


def _before(told: tuple[str, ...], word: str) -> list[str]:
    """The words that stand before a word and may say which thing is meant, of Chinese the characters."""
    if word > CJK_BEGINS:
        return [*filter(_says, "".join(told).partition(word)[0])]
    says = [token for token in told if token.isalpha() and token not in STOPWORDS]
    return says[: says.index(word)] if word in says else [VALUE] * FEW


def _say_which(mine: Collection[str], theirs: Collection[str]) -> bool:
    """ "In the morning" and "at bedtime", the way up and the way down: small words that tell things of a sort apart."""
    both = ((row.intersection(mine), row.intersection(theirs)) for row in ROWS)
    return any(ours and others and ours.isdisjoint(others) for ours, others in both)


@remembered(PAIRS)
def _differences(told: tuple[str, ...], other: tuple[str, ...]) -> Differences:
    mine, theirs = _pieces(told), _pieces(other)
    gaps = list(_gaps(mine, theirs))
    shared = {piece for piece in set(mine).intersection(theirs) if piece < CJK_BEGINS}
    apart = [_tell_apart(gap, shared) for gap in gaps]
    begins = sum(found and not gap.is_last for found, gap in zip(apart, gaps, strict=True))
    return Differences(len(gaps), sum(apart), sum(apart[:-1]), begins)


@remembered(SENTENCES)
def _pieces(told: tuple[str, ...]) -> tuple[str, ...]:
    """Words, and single characters of Chinese, without the measure word behind a value."""
    if max(told, default="") < CJK_BEGINS:
        return told
    found: list[str] = []
    for before, token in itertools.pairwise(("", *told)):
        if token > CJK_BEGINS:
            found += token[before == VALUE and token[0] in ZH_MEASURES :]
        else:
            found.append(token)
    return tuple(found)


def _gaps(mine: tuple[str, ...], theirs: tuple[str, ...]) -> Iterator[Gap]:
    """What stands between the same words. The time grows with the number of pieces."""
    at = behind = 0
    before: Sequence[str] = ()
    for here, there in ((0, 0), *_anchors(mine, theirs), (len(mine), len(theirs))):
        if here < at or there < behind:
            continue
        back = _alike(mine[at:here][::-1], theirs[behind:there][::-1])
        on = _alike(mine[here:], theirs[there:])
        same = mine[here - back : here + on]
        opens = not at + behind and _is_a_name(mine[: here - back]) and _is_a_name(theirs[: there - back])
        if not opens and len(same) == 1 and same[0] > CJK_BEGINS and _says(same[0]):
            continue  # one character that says something is half a word
        if len(same) == 1 and same[0] in LISTS:
            continue
        after = same if opens or len(same) > 1 or any(piece == VALUE or _says(piece) for piece in same) else ()
        if here - back > at and there - back > behind:
            yield Gap(_runs(mine[at : here - back], theirs[behind : there - back], before, after), before, after)
        if same:
            at, behind, before = here + on, there + on, after


def _runs(
    mine: Sequence[str], theirs: Sequence[str], before: Sequence[str], after: Sequence[str]
) -> tuple[Sequence[str], Sequence[str]]:
    if after and after[0] not in ENDS_CLAUSE:
        return _last(mine), _last(theirs)
    if before and before[-1] not in ENDS_CLAUSE:
        return _first(mine), _first(theirs)
    return (), ()


def _may_be_a_name(run: Sequence[str]) -> bool:
    """Not long, small words of Chinese around it aside, and nobody is told of."""
    if max(run, default="") > CJK_BEGINS:
        says = [at for at, piece in enumerate(run) if _says(piece)] or [0, len(run) - 1]
        return says[-1] - says[0] < ZH_LONGEST
    return 0 < len(run) <= LONGEST and NOBODY.isdisjoint(run)


def _is_a_name(run: Sequence[str]) -> bool:
    """One word, or two characters of Chinese."""
    return len(run) == 1 + (max(run, default="") > CJK_BEGINS)


def _alike(mine: Sequence[str], theirs: Sequence[str]) -> int:
    """With how many same pieces both begin."""
    at = 0
    for one, other in zip(mine, theirs, strict=False):
        if one != other:
            break
        at += 1
    return at


def _anchors(mine: tuple[str, ...], theirs: tuple[str, ...]) -> list[tuple[int, int]]:
    """The places of the most pieces that stand once in both, in the same order: the longest rising run."""
    where = _said_once(theirs)
    places = [(at, where[piece]) for piece, at in _said_once(mine).items() if piece in where]
    ends: list[int] = []
    runs: list[list[tuple[int, int]]] = []
    for at, there in places:
        rank = bisect_left(ends, there)
        run = [*runs[rank - 1], (at, there)] if rank else [(at, there)]
        ends[rank : rank + 1], runs[rank : rank + 1] = [there], [run]
    return runs[-1] if runs else []


@remembered(SENTENCES)
def _said_once(pieces: tuple[str, ...]) -> Mapping[str, int]:
    """The places of pieces that stand once, in order."""
    return {piece: at for at, piece in enumerate(pieces) if pieces.count(piece) == 1}


def _first(run: Sequence[str]) -> Sequence[str]:
    """Up to the end of the clause."""
    return run[: next((at for at, piece in enumerate(run) if piece in ENDS_CLAUSE), len(run))]


def _last(run: Sequence[str]) -> Sequence[str]:
    """From the beginning of the clause."""
    return run[max((at + 1 for at, piece in enumerate(run) if piece in ENDS_CLAUSE), default=0) :]


def _tell_apart(gap: Gap, shared: Collection[str]) -> bool:
    """ "Reads" and "writes", a day and "on workdays"."""
    mine, theirs = gap.runs
    if not gap.may_name_things:
        return False
    one, other = (
        [piece for piece in these if piece not in shared and piece not in those and _may_say(piece)]
        for these, those in ((mine, theirs), (theirs, mine))
    )
    if not gap.is_beside_value and _say_which(mine, theirs):
        return True
    if not any(map(_says, (*one, *other))):
        return False
    if (VALUE in mine) != (VALUE in theirs):
        return (bool(one) and [*theirs] == [VALUE]) or (bool(other) and [*mine] == [VALUE])
    return bool(one and other) and not gap.is_beside_value


def _may_say(piece: str) -> bool:
    """Also what a thing has: "the price", where the other is no such word."""
    return piece in ATTRIBUTES or _says(piece)


@remembered(PAIRS)
def _says(piece: str) -> bool:
    """Whether it may say which thing is meant."""
    if piece > CJK_BEGINS:
        return piece.isalpha() and piece not in ZH_COMMON and piece not in ZH_CHANGING
    return is_word(piece) and piece not in ATTRIBUTES and not CHANGES.fullmatch(piece)
