"""A small kit for tests of compaction: units, rounds, states, a counter of words, and answers that can be told.

    state = a_state(a_unit("hello there"), *a_round("look it up", "found it"), limit=100)
    attempt = play(truncate, state, like_marked)

Ids and timestamps rise in the order of building. One word or one Chinese character is one token.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from health.compaction.config import ContextConfig
from health.compaction.laws.invariants import broken
from health.compaction.reading.text import CJK
from health.compaction.terms.ports import Answer, Attempt, Embed, Embedded, Grade, Kit, Need, Strategy
from health.compaction.terms.units import Call, ContextState, Kind, Priority, Role, Unit

_TOKEN = re.compile(rf"[{CJK}]|[^\s{CJK}]+")
_MARK = re.compile(r"~([01]\.?\d*)")
_numbers = itertools.count(1)


@dataclass(frozen=True)
class WordCounter:
    """One token a word or Chinese character; a message costs nothing more unless told."""

    per_message: int = 0
    name: str = "words"
    grade: Grade = Grade.EXACT

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(_TOKEN.findall(text)) for text in texts]


KIT = Kit(counter=WordCounter())


def a_unit(content: str = "some words", *, id: str = "", **fields: Any) -> Unit:  # noqa: A002
    number = next(_numbers)
    return Unit(
        **{"id": id or f"u{number}", "role": Role.USER, "timestamp": float(number), "content": content} | fields
    )


def a_round(said: str, *results: str, id: str = "", **fields: Any) -> tuple[Unit, ...]:  # noqa: A002
    """An assistant's unit with one call for each result, and the results."""
    round_id = id or f"r{next(_numbers)}"
    calls = tuple(Call(id=f"{round_id}-c{i}", name="look", arguments="{}") for i in range(len(results)))
    asked = a_unit(said, id=f"{round_id}-a", role=Role.ASSISTANT, calls=calls, round_id=round_id, **fields)
    answered = (
        a_unit(text, id=f"{round_id}-t{i}", role=Role.TOOL, answers=calls[i].id, round_id=round_id, **fields)
        for i, text in enumerate(results)
    )
    return (asked, *answered)


def a_talk(length: int, *, words: int = 10, start: int = 0, mark: str = "") -> tuple[Unit, ...]:
    """User and assistant in turn, ids t0, t1, …, each `words` words, every text different."""
    return tuple(
        a_unit(
            " ".join([f"t{i}", *(f"word{i}x{j}" for j in range(words - 1 - bool(mark))), *([mark] if mark else [])]),
            id=f"t{i}",
            role=Role.USER if i % 2 == 0 else Role.ASSISTANT,
        )
        for i in range(start, start + length)
    )


def p1(unit: Unit) -> Unit:
    return replace(unit, priority=Priority.P1)


def p3(unit: Unit) -> Unit:
    return replace(unit, priority=Priority.P3)


def pinned(unit: Unit) -> Unit:
    return replace(unit, pinned=True)


def a_state(
    *units: Unit,
    limit: int = 100,
    config: ContextConfig | None = None,
    kit: Kit = KIT,
    **fields: Any,
) -> ContextState:
    return ContextState(units=kit.counted(units), limit=limit, config=config or ContextConfig(), **fields)


def silence(need: Need) -> Answer:
    """The answer of a world without helpers: strategies go on with what they have."""
    return None


def like_marked(need: Need) -> Answer:
    """Embeds a text marked "~0.4" at cosine 0.4 to the task; a text without a mark points where the task points."""
    if not isinstance(need, Embed):
        return None
    marks = [_MARK.search(text) for text in need.texts]
    cosines = np.array([float(mark[1]) if mark else 1.0 for mark in marks], dtype=np.float32)
    return Embedded(vectors=np.stack([cosines, np.sqrt(1 - cosines**2)], axis=1), name="marks")


@dataclass
class Listening:
    """Answers like another, and remembers what it was asked."""

    answer: Callable[[Need], Answer] = silence
    needs: list[Need] = field(default_factory=list)

    def __call__(self, need: Need) -> Answer:
        self.needs.append(need)
        return self.answer(need)


def play(
    strategy: Strategy, state: ContextState, answer: Callable[[Need], Answer] = silence, *, kit: Kit = KIT
) -> Attempt:
    """Runs a strategy to its end, answering all it asks."""
    return finish(strategy(state, kit), answer)


def finish(asking: Any, answer: Callable[[Need], Answer] = silence) -> Any:
    """What any asking generator returns when all it asks is answered."""
    try:
        need = next(asking)
        while True:
            need = asking.send(answer(need))
    except StopIteration as end:
        return end.value


def ids(state_or_units: ContextState | Iterable[Unit]) -> list[str]:
    units = state_or_units.units if isinstance(state_or_units, ContextState) else state_or_units
    return [unit.id for unit in units]


def texts(state: ContextState) -> str:
    """All contents, for asking what still stands."""
    return "\n".join(unit.content for unit in state.units)


def broken_laws(before: ContextState, attempt: Attempt) -> list[str]:
    """The laws that an attempt broke, and counts and timestamps that are not what they must be."""
    after = attempt.state.units
    stamps = [unit.timestamp for unit in after]
    recounted = KIT.counted(replace(unit, estimated_tokens=None) for unit in after)
    return [
        *map(str, broken(before.units, after)),
        *(["timestamps fall"] if stamps != sorted(stamps) else []),
        *(["a unit is not counted, or wrongly"] if recounted != after else []),
        *(["it is larger"] if attempt.changed and attempt.state.estimated_tokens >= before.estimated_tokens else []),
    ]


def placeholders_in(state: ContextState) -> list[Unit]:
    return [unit for unit in state.units if unit.kind is Kind.PLACEHOLDER]


def a_marked(cosine: float, **fields: Any) -> Unit:
    """A unit of thirty words that `like_marked` puts at this cosine to the task; an assistant's."""
    number = next(_numbers)
    words = " ".join(f"m{number}w{i}" for i in range(29))
    return a_unit(f"~{cosine} {words}", **({"role": Role.ASSISTANT} | fields))


def between(*middle: Unit, tail: int = 10) -> tuple[Unit, ...]:
    """The units between a first request and a long enough recent part, all unmarked: so that they are judged."""
    units = (a_unit("what it is for", id="first"), *middle, *a_talk(tail - 1, words=30), a_unit("go on", id="last"))
    return tuple(replace(unit, timestamp=float(next(_numbers))) for unit in units)
