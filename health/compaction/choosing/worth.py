"""What each passage is worth beside what it covers: who said it, and whether its message matches the task: BM25 and
embeddings fused by rank. That is worth only as much as the task is specific: a general one chooses worse than chance.

The priors were set on recordings of service dialogs, coding chats and coding agents; what weighs a task on generated
conversations (benchmarks/quality.py).
"""

from __future__ import annotations

import math
import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from health.compaction.choosing.scoring import said
from health.compaction.laws.invariants import unanswered
from health.compaction.reading.features import Features, shape_weight, tokens_of
from health.compaction.reading.text import remembered
from health.compaction.terms.ports import Embed, Embedded, Need
from health.compaction.terms.units import ContextState, Role

# The share of the room for whole messages that match a question; all of it from so specific a one on. An answer is as
# long as a message is, however small the room: there is room for one of so many tokens.
TASK_SHARE, SPECIFIC_ENOUGH, AN_ANSWER = 0.4, 0.33, 150
# Where no task is stated, what a person said last and nobody answered yet is one. It seldom asks, so only messages that
# say so much of it are answers, in that share of the room.
LAST_WORDS_SHARE, SAYS_ENOUGH = 0.16, 0.75
PRIOR = {Role.USER: 2.0, Role.ASSISTANT: 1.0, Role.TOOL: 1.0}
SHARE_POWER = 0.3
BRIEF_CHARS, BREVITY_MOST = 1500, 6.0
# A message that says less of a task, rare words counting for more, is found by its meaning and not by its words. Where
# meaning moved what words had found, it cost service dialogs at a tenth of the tokens seven points.
SAYS_LITTLE = 0.1
# Beside words found.
MEANING_WEIGHT = 0.4
# Of all text so much is embedded, those messages first that say most for their tokens; tool results are not.
EMBEDDED_SHARE = 0.3
# So few tokens are embedded in any case.
EMBEDDED_LEAST = 500
# The nearest count; every text is a little similar to every other, and that would drown what words say.
NEAREST_SHARE = 0.3
MOST_PARTS = 8
_PART_END = re.compile(r"[;；.。?？!！\n:：]+")


class Piece(NamedTuple):
    """A passage as it is weighed: its text, who said it, the message that it is from."""

    text: str
    role: Role
    source_id: str
    tokens: int
    chars: int  # of the whole message


class Matches(NamedTuple):
    """The pieces of each message that matches the task, the best first; and how far the task asks for something, from
    0 to 1. These messages may take that `share` of the room, or an answer's length.
    """

    messages: list[list[int]]
    asks: float
    share: float

    def budget(self, room: int) -> int:
        """The tokens of the room that the messages may take."""
        return int(self.asks * max(self.share * room, min(AN_ANSWER, room)))


class Group(NamedTuple):
    """The pieces of one message."""

    source_id: str
    role: Role
    pieces: list[int]
    tokens: int
    says: dict[int, None]  # its features
    own: float


def matches(pieces: Sequence[Piece], features: Features, state: ContextState) -> Generator[Need, Any, Matches]:
    question = Question(state.task or state.asked or unanswered(state.units), features)
    if not question.specific:
        return Matches([], 0.0, 0.0)
    groups = list(_groups(pieces, features))
    scores = question.bm25([group.tokens for group in groups], [group.says for group in groups])
    if state.task:
        scores = fused(scores, (yield from _similar(groups, question, state)), weight=MEANING_WEIGHT)
    best = [groups[at] for at in np.argsort(-scores, kind="stable") if scores[at] > 0]
    found = [one.pieces for one in best if state.task or question.said_by(one.says) >= SAYS_ENOUGH]
    found += [[one] for pieces in found for one in pieces if question.said_by(features.each[one]) >= SAYS_ENOUGH]
    asks = question.narrow * min(1.0, question.specific / SPECIFIC_ENOUGH)
    return Matches(found, asks, TASK_SHARE if state.task else LAST_WORDS_SHARE)


def _groups(pieces: Sequence[Piece], features: Features) -> Iterator[Group]:
    of_message: dict[str, list[int]] = {}
    for at, piece in enumerate(pieces):
        of_message.setdefault(piece.source_id, []).append(at)
    for name, own in of_message.items():
        says = dict.fromkeys([key for at in own for key in features.each[at]])
        tokens = sum([pieces[at].tokens for at in own])
        yield Group(name, pieces[own[0]].role, own, tokens, says, sum([features.own[at] for at in own]))


def priors(pieces: Sequence[Piece]) -> dict[Role, float]:
    """Whoever says little says it on purpose: a few words of the user between long results weigh more."""
    spoken: dict[Role, int] = {}
    for piece in pieces:
        spoken[piece.role] = spoken.get(piece.role, 0) + piece.tokens
    everything = max(1, sum(spoken.values()))
    return {
        role: PRIOR.get(role, 1.0) * (len(PRIOR) * max(tokens / everything, 0.01)) ** -SHARE_POWER
        for role, tokens in spoken.items()
    }


def brevity(piece: Piece) -> float:
    """A short result is a confirmation, and each of its words counts; of a long one most will not be asked for."""
    if piece.role is not Role.TOOL:
        return 1.0
    return min(BREVITY_MOST, max(1.0, BRIEF_CHARS / max(1, piece.chars)))


def _similar(
    groups: Sequence[Group], question: Question, state: ContextState
) -> Generator[Need, Any, NDArray[np.float64]]:
    """Cosines with the task of messages that its words do not find; 0 for the others, for what is not embedded or not
    near, and where no embedder answers."""
    cosines, chosen, asked = np.zeros(len(groups)), _candidates(groups, question), _parts(state.task)
    texts = {unit.id: said(unit) for unit in state.units}
    answer = yield Embed(texts=(*asked, *(texts[groups[at].source_id] for at in chosen)), queries=len(asked))
    if chosen and isinstance(answer, Embedded):
        found = (answer.vectors[len(asked) :] @ answer.vectors[: len(asked)].T).max(axis=1)
        cosines[chosen] = np.where(found >= np.quantile(found, 1 - NEAREST_SHARE), found, 0.0)
    return cosines


def _candidates(groups: Sequence[Group], question: Question) -> list[int]:
    """The messages that are embedded: those that no word of the task finds. What says little would cost time only."""
    room = max(EMBEDDED_LEAST, EMBEDDED_SHARE * sum(group.tokens for group in groups))
    spoken = (at for at, group in enumerate(groups) if group.role is not Role.TOOL)
    unfound = (at for at in spoken if question.said_by(groups[at].says) < SAYS_LITTLE)
    found = []
    for at in sorted(unfound, key=lambda at: -groups[at].own / (groups[at].tokens + 1)):
        room -= groups[at].tokens
        if room < 0:
            break
        found.append(at)
    return sorted(found)


def _parts(task: str) -> tuple[str, ...]:
    """A task that names several things is near to none of them: each is asked for by itself."""
    return tuple(part.strip() for part in _PART_END.split(task) if part.strip())[:MOST_PARTS] or (task,)


_K1, _B = 1.2, 0.6
_RANK_OFFSET = 10
# A question names no more things than this; a description of a whole task does.
FEW_NAMED = 4
# A word of a question that nobody said ("remind") tells little of what it asks for, against the rarest one.
UNHEARD = 0.5
_FEWEST = 3  # letters of a stem
_ENDINGS = ("ations", "ation", "ings", "ing", "edly", "ed", "ies", "ely", "es", "ly", "e", "s")


@remembered(65_536)
def stem(word: str) -> str:
    """A crude stem: enough that "booked" finds "booking"."""
    if not word.isascii() or not word.isalpha():
        return word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _FEWEST:
            return word[: -len(ending)]
    return word


class Question:
    """What is asked, in stems. `specific` is 0 where none of it occurs in the history, or all of it everywhere."""

    def __init__(self, text: str, features: Features) -> None:
        self.features = features
        asked = {stem(token.lower()) for token in tokens_of(text) if shape_weight(token)}
        heads = {one[:_FEWEST] for one in asked}  # which a stem never cuts off
        near = ((key, name) for key, name in enumerate(features.names) if name[:_FEWEST] in heads)
        stems = {key: one for key, name in near if (one := stem(name)) in asked}
        frequency: dict[str, int] = {}
        for key, one in stems.items():
            frequency[one] = frequency.get(one, 0) + features.frequency[key]
        count = len(features.each) + 1
        self.rarity = {one: math.log((count + 1) / (times + 0.5)) for one, times in frequency.items() if times < count}
        unheard = [one for one in asked if one not in frequency and one[0] <= "\u2e80"]
        self._says = sum(self.rarity.values()) + UNHEARD * len(unheard) * math.log((count + 1) / 0.5)
        self.stem_of = {key: one for key, one in stems.items() if one in self.rarity}

    @property
    def narrow(self) -> float:
        """What names many things asks for none of them: 1 for a question, less the more words of it were said."""
        return min(1.0, FEW_NAMED / max(1, len(self.rarity)))

    @property
    def specific(self) -> float:
        return min(1.0, sum(self.rarity.values()) / (2.5 * math.log(len(self.features.each) + 2)))

    def said_by(self, keys: Iterable[int]) -> float:
        """How much of the question these features say, from 0 to 1, rare words for more. Words that nobody said count,
        but for pairs in Chinese, most of which are no words.
        """
        hit = {self.stem_of[key]: None for key in keys if key in self.stem_of}
        return sum(self.rarity[one] for one in hit) / max(1e-9, self._says)

    def bm25(self, lengths: Sequence[int], each: Sequence[Iterable[int]]) -> NDArray[np.float64]:
        """One score for each collection of features; `lengths` in tokens."""
        mean = sum(lengths) / max(1, len(lengths))
        scores = np.zeros(len(lengths))
        asked = frozenset(self.stem_of)
        for at, keys in enumerate(each):
            if asked.isdisjoint(keys):
                continue
            hit = dict.fromkeys(self.stem_of[key] for key in keys if key in asked)  # a set's order is chance
            norm = (_K1 + 1) / (1 + _K1 * (1 - _B + _B * lengths[at] / mean))
            scores[at] = norm * sum(self.rarity[one] for one in hit)
        return scores


def fused(words: NDArray[np.float64], meaning: NDArray[np.float64], *, weight: float) -> NDArray[np.float64]:
    """Reciprocal ranks added up, those of meaning for so much. Zero or less has no rank."""
    return _reciprocal(words) + weight * _reciprocal(meaning)


def _reciprocal(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    ranks = np.empty(len(scores))
    ranks[np.argsort(-scores, kind="stable")] = np.arange(len(scores))
    return np.where(scores > 0, _RANK_OFFSET / (_RANK_OFFSET + ranks), 0.0)
