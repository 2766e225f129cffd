"""What each passage is worth beside what it covers: how it matches the task, and who said it.

The priors were set on recordings of service dialogs, coding chats and coding agents; what weighs a task on generated
conversations (benchmarks/quality.py).
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from health.compaction.features import Features
from health.compaction.matching import Question, fused, with_neighbours
from health.compaction.ports import Embed, Embedded, Need
from health.compaction.units import ContextState, Role

TASK_WEIGHT = 25.0
# A passage that says little by itself matches by accident: its match counts in full from this much on.
OWN_ENOUGH = 8.0
PRIOR = {Role.USER: 2.0, Role.ASSISTANT: 1.0, Role.TOOL: 1.0}
# Tables match every word of a task in every row: what of them is needed is named elsewhere.
MATCH = {Role.USER: 1.0, Role.ASSISTANT: 1.0, Role.TOOL: 0.15}
SHARE_POWER = 0.3
BRIEF_CHARS, BREVITY_MOST = 1500, 6.0
# Of all text so much is embedded, the passages that say most; tool results are not. Three times as much finds no more.
EMBEDDED_SHARE = 0.2
# So few tokens are embedded in any case.
EMBEDDED_LEAST = 500
# The nearest count; every text is a little similar to every other, and that would drown what words say.
NEAREST_SHARE = 0.05
MOST_PARTS = 8
_PART_END = re.compile(r"[;；.。?？!！\n:：]+")


class Piece(NamedTuple):
    """A passage as it is weighed: its text, who said it, the message that it is from."""

    text: str
    role: Role
    source_id: str
    tokens: int
    chars: int  # of the whole message


def bonuses(pieces: Sequence[Piece], features: Features, state: ContextState) -> Generator[Need, Any, list[float]]:
    """How well each piece matches the task, in the measure of `Features.weights`."""
    matches = yield from _matches(pieces, features, state)
    return [
        match * min(1.0, own / OWN_ENOUGH) * MATCH.get(piece.role, 1.0)
        for piece, match, own in zip(pieces, matches.tolist(), features.own, strict=True)
    ]


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


def _matches(
    pieces: Sequence[Piece], features: Features, state: ContextState
) -> Generator[Need, Any, NDArray[np.float64]]:
    question = Question(state.task, features)
    if not question.specific:
        return np.zeros(len(pieces))
    scores = [question.bm25([piece.tokens for piece in pieces]), (yield from _similar(state.task, pieces, features))]
    return TASK_WEIGHT * question.specific * with_neighbours(fused(*scores))


def _similar(task: str, pieces: Sequence[Piece], features: Features) -> Generator[Need, Any, NDArray[np.float64]]:
    """Cosines with the task, 0 for pieces that are not embedded and where no embedder answers."""
    cosines = np.zeros(len(pieces))
    chosen = _most_saying(pieces, features)
    asked = _parts(task)
    answer = yield Embed(texts=(*asked, *(pieces[at].text for at in chosen)), queries=len(asked))
    if isinstance(answer, Embedded):
        found = (answer.vectors[len(asked) :] @ answer.vectors[: len(asked)].T).max(axis=1)
        nearest = np.quantile(found, 1 - NEAREST_SHARE) if len(found) else 0.0
        cosines[chosen] = np.where(found >= nearest, found, 0.0)
    return cosines


def _parts(task: str) -> tuple[str, ...]:
    """A task that names several things is near to none of them: each is asked for by itself."""
    return tuple(part.strip() for part in _PART_END.split(task) if part.strip())[:MOST_PARTS] or (task,)


def _most_saying(pieces: Sequence[Piece], features: Features) -> list[int]:
    room = max(EMBEDDED_LEAST, EMBEDDED_SHARE * sum(piece.tokens for piece in pieces))
    said = (at for at, piece in enumerate(pieces) if piece.role is not Role.TOOL)
    chosen = []
    for at in sorted(said, key=features.own.__getitem__, reverse=True):
        room -= pieces[at].tokens
        if room < 0:
            break
        chosen.append(at)
    return sorted(chosen)
