"""What compaction asks of the world, as values: counting, embedding, summarising, pruning.

A strategy is a generator: it yields `Need`s, is sent the answers, and returns an `Attempt`. Any answer may be
None (no helper, or the helper failed): then the strategy goes on without it. Closing the generator cancels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from health.compaction.terms.reasons import Reason, Why
from health.compaction.terms.units import ContextState, Unit


class Grade(StrEnum):
    """How far an estimate is to be trusted."""

    EXACT = "exact"  # the model's own vocabulary
    APPROXIMATE = "approximate"  # another family's vocabulary
    ROUGH = "rough"  # characters


class Counter(Protocol):
    """Estimates tokens. Never measured, never exact about templates; `per_message` is 4 or 5 by family."""

    @property
    def name(self) -> str: ...
    @property
    def grade(self) -> Grade: ...
    @property
    def per_message(self) -> int: ...
    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text alone, in one batch. Never raises."""
        ...


def counted(units: Iterable[Unit], counter: Counter) -> tuple[Unit, ...]:
    """The units, each with its estimate; those that have one are not counted again. One batch."""
    units = tuple(units)
    missing = [unit for unit in units if unit.estimated_tokens is None]
    if not missing:
        return units
    sizes = iter(text_sizes([(unit.content, unit.attached) for unit in missing], counter))
    return tuple(
        unit if unit.estimated_tokens is not None else replace(unit, estimated_tokens=unit.image_tokens + next(sizes))
        for unit in units
    )


def text_sizes(messages: Sequence[tuple[str, str]], counter: Counter) -> list[int]:
    """What messages of these contents, and what goes along with them, cost; images are not in it. One batch."""
    tokens = counter.count([text for message in messages for text in message])
    return [counter.per_message + content + along for content, along in zip(tokens[::2], tokens[1::2], strict=True)]


@dataclass(frozen=True, kw_only=True)
class Embed:
    """Vectors of these texts, all from one embedder. The first `queries` are not worth keeping for long.

    Answered by `Embedded` or None.
    """

    texts: tuple[str, ...]
    queries: int = 0


@dataclass(frozen=True, kw_only=True)
class Embedded:
    """Unit-length rows, one for each text. `name` says which embedder: vectors of two are never compared."""

    vectors: NDArray[np.float32]
    name: str


@dataclass(frozen=True, kw_only=True)
class Summarise:
    """A summary by a model: `source` in pieces that fit it, at most `max_tokens`. Answered by `Summarised` or None."""

    source: tuple[Unit, ...]
    max_tokens: int
    focus: str = ""


@dataclass(frozen=True, kw_only=True)
class Summarised:
    """A model's answer, not yet checked. `read_chars` counts what it was shown of each source message."""

    text: str
    finished: bool
    read_chars: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Prune:
    """What the pruning agent decides about these units. Answered by its JSON text, not yet checked, or None."""

    units: tuple[Unit, ...]
    target_tokens: int
    task: str = ""


Need = Embed | Summarise | Prune
Answer = Embedded | Summarised | str | None


class Read(NamedTuple):
    """How much of one removed message was read before it was removed, in characters."""

    source_id: str
    read: int
    total: int


def read_in_full(units: Iterable[Unit]) -> tuple[Read, ...]:
    """All of these units was read. One that stands for several messages was read for each of them."""
    return tuple(
        Read(source_id=source, read=len(unit.content), total=len(unit.content))
        for unit in units
        for source in unit.sources
    )


@dataclass(frozen=True, kw_only=True)
class ForcedShortening:
    """One step that shortened or left out messages that must stay, as they were too much. `ids` are these messages,
    `before` and `after` the tokens of the whole context."""

    why: Reason
    ids: frozenset[str]
    before: int
    after: int


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """What one strategy made of a state. `why` says why nothing changed, or what a reader should know.

    `forced` are changes to protected messages, which are lawful only if these leave no room.
    """

    state: ContextState
    changed: bool
    why: Reason | None = None
    reads: tuple[Read, ...] = ()
    forced: tuple[ForcedShortening, ...] = ()

    @property
    def note(self) -> str:
        """`why` in English; empty where there is nothing to say."""
        return str(self.why or "")

    @property
    def forced_ids(self) -> frozenset[str]:
        """The ids of all that gave way."""
        return frozenset(name for step in self.forced for name in step.ids)


def unchanged(state: ContextState, why: Reason | Why | None = None) -> Attempt:
    """The state as it is, and why."""
    return Attempt(state=state, changed=False, why=Reason(why) if isinstance(why, Why) else why)


@dataclass(frozen=True, kw_only=True)
class Kit:
    """What every strategy is handed beside the state. `may_summarise`: a model may be asked for summaries. `prepared`:
    what the pruning agent decided beforehand.

    `entries` are the ledger's, oldest first. The next ledger carries each that stands in no message.
    """

    counter: Counter
    may_summarise: bool = False
    entries: Sequence[Any] = ()
    prepared: Prepared | None = None

    def counted(self, units: Iterable[Unit]) -> tuple[Unit, ...]:
        return counted(units, self.counter)

    def tokens(self, text: str) -> int:
        return self.counter.count([text])[0]


StrategyRun = Generator[Need, Any, Attempt]
Strategy = Callable[[ContextState, Kit], StrategyRun]


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """What a pruning agent decided before its decision was needed.

    A model reads a long history for seconds or minutes. Asked while there is still room, nobody waits for it. Of a
    message that has changed since nothing is taken over; all that follows from a decision is made anew.

    `shown`: a digest of each message that the agent was shown, by its id. `answers`: its JSON
    texts, in order.
    """

    shown: Mapping[str, str]
    answers: tuple[str, ...]

    def holds_for(self, offered: Sequence[Unit]) -> bool:
        """Is every message that it was shown still there to be decided about, and unchanged?"""
        now = digests(offered)
        return bool(self.answers) and all(now.get(one) == digest for one, digest in self.shown.items())


def digests(units: Sequence[Unit]) -> dict[str, str]:
    """A digest of all that a decision about each unit can turn on, by its id: its words, its calls, its priority."""
    return {unit.id: _digest(unit) for unit in units}


def _digest(unit: Unit) -> str:
    calls = [(call.name, call.arguments) for call in unit.calls]
    decided_by = repr((unit.role, unit.kind, unit.priority, unit.content, calls))
    return hashlib.sha256(decided_by.encode("utf-8", "surrogatepass")).hexdigest()
