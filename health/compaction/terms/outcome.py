"""What a run of the chain did, step by step, and what it cost: values for a card, a log row, a test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, NamedTuple, TypeVar, overload

from health.compaction.config import RecoveryMode
from health.compaction.terms.reasons import Reason
from health.compaction.terms.units import ContextState

T = TypeVar("T")


class LazySequence(Sequence[T], Generic[T]):
    """Equal to the tuple that `find` returns, which is called once at most."""

    def __init__(self, find: Callable[[], tuple[T, ...]]) -> None:
        self._find = find
        self._kept: tuple[T, ...] | None = None

    @property
    def _found(self) -> tuple[T, ...]:
        # Without the lock of `functools.cached_property`: in Python 3.11 it is one for all objects.
        if self._kept is None:
            self._kept = self._find()
        return self._kept

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[T, ...]: ...
    def __getitem__(self, at: int | slice) -> T | tuple[T, ...]:
        return self._found[at]

    def __len__(self) -> int:
        return len(self._found)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._found == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._found)


class Status(StrEnum):
    APPLIED = "applied"
    SKIPPED = "skipped"
    FAILED = "failed"


class Code(StrEnum):
    """Why a run failed, by name."""

    TOKEN_LIMIT_EXCEEDED = "TOKEN_LIMIT_EXCEEDED"  # noqa: S105
    BREAKER_FAILED = "BREAKER_FAILED"


@dataclass(frozen=True, kw_only=True)
class Step:
    """One strategy's turn. `phase` is the strategy's name, or "detection", "recovery", "handover", "success".

    A step that did not shrink has `changed=False` and says `why`. `ms` is stamped by the runner, and `waited_ms`: how
    much of it a model took to answer.
    """

    phase: str
    estimated_before: int
    estimated_after: int
    changed: bool
    why: Reason | None = None
    ms: float = 0.0
    waited_ms: float = 0.0

    @property
    def note(self) -> str:
        """`why` in English; empty where there is nothing to say."""
        return str(self.why or "")

    def as_json(self) -> dict[str, Any]:
        """As runs store it and `compact --json` tells it: the sentence for readers, the reason to translate."""
        return {
            "phase": self.phase,
            "estimated_before": self.estimated_before,
            "estimated_after": self.estimated_after,
            "changed": self.changed,
            "note": self.note,
            "why": self.why.as_json() if self.why else {},
            "ms": self.ms,
        }


class Extent(StrEnum):
    """How much of a removed message was read by what replaced it."""

    IN_FULL = "in full"
    IN_PART = "in part"
    NOT_AT_ALL = "not at all"


class Receipt(NamedTuple):
    """The coverage receipt of one removed message, in characters."""

    source_id: str
    extent: Extent
    read: int
    total: int


@dataclass(frozen=True, kw_only=True)
class Loss:
    """One identifier, number, path, URL or binding sentence of removed text. `kept`: it still stands in context."""

    text: str
    kind: str
    source_id: str
    kept: bool


@dataclass(frozen=True, kw_only=True)
class BreakingOutcome:
    """What the reward is computed from, in seven fields. Shares are 0 to 1; no model's time counts."""

    success: bool
    used_recovery: bool
    coherence_delta: float
    tokens_reduced: int
    time_ms: float
    priority_preserved: float
    original_tokens: int


@dataclass(frozen=True, kw_only=True)
class CompactionOutcome:
    """The result of a run. `state` is the new context, or the old one where nothing was applied.

    `messages` is `state` in OpenAI's format, filled by `compact_messages` only. `why` says how the run ended, `reason`
    the same in English. `forced_ids` are the messages that must stay and were shortened or left out, as they were too
    much; `warnings` name each such step.
    """

    status: Status
    state: ContextState
    estimated_tokens_before: int
    estimated_tokens_after: int
    steps: tuple[Step, ...] = ()
    coverage: tuple[Receipt, ...] = ()
    losses: Sequence[Loss] = ()
    ledger: Sequence[Any] = ()
    removed_ids: tuple[str, ...] = ()
    coherence: float | None = None
    reward: float | None = None
    breaking: BreakingOutcome | None = None
    recovered: RecoveryMode | None = None
    code: Code | None = None
    why: Reason | None = None
    counter: str = ""
    grade: str = ""
    embedder: str = ""
    warnings: tuple[Reason | str, ...] = ()
    forced_ids: frozenset[str] = frozenset()
    messages: list[dict[str, Any]] = field(default_factory=list, repr=False)

    @property
    def reason(self) -> str:
        return str(self.why or "")
