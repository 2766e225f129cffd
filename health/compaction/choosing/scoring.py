"""What the context is about: relevance of each unit to the task, and coherence of a result with its original.

Both are cosines of embeddings, by the embedder of the run or, without one, by `lexical`. The bounds (0.5,
0.6, 0.7) were meant for MiniLM, so other embedders' cosines are brought to its scale first.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from health.compaction.laws.invariants import protected_ids
from health.compaction.reading import lexical
from health.compaction.terms.ports import Embed, Embedded, Kit, Need
from health.compaction.terms.units import WRITTEN, ContextState, Kind, Priority, Role, Unit

Rows = NDArray[np.float32]
Points = tuple[tuple[float, float], ...]

# What a unit says is embedded; of its calls no more than this, as arguments may be whole files.
MOST_OF_CALLS = 1000
MOST_OF_QUERY = 1200
MOST_PLANS = 3
_GOAL = re.compile(
    r"^(?:[#*>-]|[^\S\n])*+(?:(?:goal|task|objective|aim)s?\b|目标|任务).*$", re.IGNORECASE | re.MULTILINE
)

# The lines and speakers that compaction writes around what it quotes.
_LABEL = re.compile(r"(?m)^(?:\[[^\n]*\]|Done:|Open:)$")
_SPEAKER = re.compile(r"^(?:user|assistant|tool)(?: [\w.:-]{1,64})?: ")

# (their cosine, MiniLM's) at equal ranks over 12 generated conversations, by `benchmarks/calibration.py`; straight
# lines between. MiniLM, and embedders that are not named here, are taken as they are.
RELEVANCE_SCALES: dict[str, Points] = {
    "wordllama": ((0, 0), (0.04, 0.10), (0.12, 0.21), (0.33, 0.36), (0.72, 0.59), (0.81, 0.67), (1, 1)),
    "lexical": ((0, 0), (0.05, 0.21), (0.10, 0.36), (0.16, 0.59), (0.30, 0.67), (1, 1)),
}
COHERENCE_SCALES: dict[str, Points] = {
    "wordllama": ((0, 0), (0.17, 0.22), (0.41, 0.48), (0.65, 0.73), (0.79, 0.86), (0.91, 0.92), (1, 1)),
    "lexical": ((0, 0), (0.12, 0.22), (0.31, 0.48), (0.56, 0.73), (0.69, 0.86), (0.77, 0.92), (1, 1)),
}


@dataclass(frozen=True, kw_only=True)
class Relevance:
    """Scores from 0 to 1 by unit id. `known` is False where there was nothing to be relevant to: all are 0 then."""

    scores: dict[str, float]
    embedder: str
    known: bool = True


def query_of(state: ContextState) -> str:
    """What the context is for: the task, the last thing the user really said, the goals of the plans."""
    spoken = [unit for unit in state.units if unit.role is Role.USER and unit.kind not in WRITTEN]
    last = next((unit.content for unit in reversed(spoken) if not unit.inserted), "")
    plans = [_goal(unit.content) for unit in state.units if unit.kind is Kind.PLAN_REF][-MOST_PLANS:]
    return "\n".join(part for part in (_both_ends(state.task), _both_ends(last), *plans) if part.strip())


def relevance(state: ContextState, kit: Kit, units: Sequence[Unit]) -> Generator[Need, Any, Relevance]:
    """How close each unit is to `query_of(state)`: max(0, cosine), P1 raised by the boost, once, and at most 1."""
    query = query_of(state)
    if not query or not units:
        return Relevance(scores={unit.id: 0.0 for unit in units}, embedder="", known=False)
    embedded = yield from embed((query, *(said(unit) for unit in units)), queries=1)
    cosines = scaled(embedded.vectors[1:] @ embedded.vectors[0], RELEVANCE_SCALES.get(embedded.name))
    boost = state.config.prioritize_recent.priority_boost
    scores = {
        unit.id: min(1.0, float(cosine) * (boost if unit.priority is Priority.P1 else 1))
        for unit, cosine in zip(units, cosines, strict=True)
    }
    return Relevance(scores=scores, embedder=embedded.name)


def coherence(before: Sequence[Unit], after: Sequence[Unit], *, query: str = "") -> Generator[Need, Any, float]:
    """How much `after` is still about what mattered in `before`, 0 to 1.

    What mattered: with a query the protected units and the more relevant half of the others, without one all.
    A summary weighs as much as the messages that it stands for; a placeholder says nothing and weighs nothing.
    """
    if not before:
        return 1.0
    texts = tuple(dict.fromkeys([query, *(text for unit in (*before, *after) for text in _told(unit))]))
    embedded = yield from embed(texts, queries=1)
    row = dict(zip(texts, embedded.vectors, strict=True))
    mattered = _mattering(before, row, query) if query else before
    likeness = np.dot(_centre(mattered, row), _centre(after, row))
    return float(scaled(np.array([likeness]), COHERENCE_SCALES.get(embedded.name))[0])


def embed(texts: Sequence[str], *, queries: int) -> Generator[Need, Any, Embedded]:
    """The vectors of the texts, from the embedder, else from `lexical`. An answer of another shape is none."""
    answer = yield Embed(texts=tuple(texts), queries=queries)
    if isinstance(answer, Embedded) and len(answer.vectors) == len(texts) and np.isfinite(answer.vectors).all():
        return answer
    return lexical.vectors(texts)


def said(unit: Unit) -> str:
    """What a unit says, for an embedder: its content, then what it called."""
    calls = "\n".join(f"{call.name} {call.arguments}" for call in unit.calls)[:MOST_OF_CALLS]
    return f"{unit.content}\n{calls}" if calls else unit.content


def scaled(cosines: NDArray[Any], points: Points | None) -> NDArray[Any]:
    """Cosines from 0 to 1 on MiniLM's scale. Keeps the order."""
    clipped = np.clip(cosines, 0.0, 1.0)
    if points is None:
        return clipped
    theirs, ours = zip(*points, strict=True)
    return np.interp(clipped, theirs, ours)


def _both_ends(text: str) -> str:
    half = MOST_OF_QUERY // 2
    return text if len(text) <= MOST_OF_QUERY else f"{text[:half]} … {text[-half:]}"


def _goal(plan: str) -> str:
    """The line of a plan that names its goal, else its first."""
    named = _GOAL.search(plan[:20_000])
    return (named[0] if named else plan.lstrip()[:200].split("\n", 1)[0])[:200].strip()


def _told(unit: Unit) -> list[str]:
    """What a unit tells: a summary its lines, each by itself as messages are, without labels and speakers."""
    if unit.kind is not Kind.SUMMARY:
        return [said(unit)]
    lines = (_SPEAKER.sub("", line).strip() for line in _LABEL.sub("", unit.content).split("\n"))
    return [line for line in lines if line] or [unit.content]


def _mattering(before: Sequence[Unit], row: dict[str, Rows], query: str) -> list[Unit]:
    close = [max(float(np.dot(row[text], row[query])) for text in _told(unit)) for unit in before]
    middle = float(np.median(close))
    kept = protected_ids(before)
    return [unit for unit, cosine in zip(before, close, strict=True) if cosine >= middle or unit.id in kept]


def _centre(units: Sequence[Unit], row: dict[str, Rows]) -> Rows:
    """The mean of their vectors at length 1, zeros if they say nothing."""
    if not units:
        return np.zeros_like(next(iter(row.values())))
    told = [(_weight(unit) / len(texts), text) for unit in units for texts in [_told(unit)] for text in texts]
    weights = np.array([weight for weight, _ in told], dtype=np.float32)
    return lexical.normalised(weights @ np.stack([row[text] for _, text in told]))


def _weight(unit: Unit) -> float:
    return 0.0 if unit.kind is Kind.PLACEHOLDER else float(len(unit.sources))
