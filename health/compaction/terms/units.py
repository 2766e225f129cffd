"""What compaction sees: units of context, and the state that a strategy turns into a smaller one. Frozen.

A unit is one message of the request, or one that compaction wrote. Units of one `round_id` (an assistant's
calls and all their results) are one cut: kept together or dropped together. Counts here are estimates.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from functools import cached_property, lru_cache, wraps
from typing import Any, Generic, TypeVar

from health.compaction.config import ContextConfig

T = TypeVar("T")


class Kind(StrEnum):
    """What a unit's content is, which decides how it may be shortened. Values are the configuration's names."""

    MESSAGE = "message"
    CODE = "code"
    PLAN_REF = "plan_ref"
    LOG = "log"
    SUMMARY = "summary"
    PLACEHOLDER = "placeholder"
    OTHER = "other"

    __hash__ = str.__hash__  # an Enum's own is many times slower, and this is asked of every unit


WRITTEN = frozenset({Kind.SUMMARY, Kind.PLACEHOLDER})


class Role(StrEnum):
    SYSTEM = "system"
    DEVELOPER = "developer"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"

    __hash__ = str.__hash__


INSTRUCTING = frozenset({Role.SYSTEM, Role.DEVELOPER})


class Priority(IntEnum):
    """Set by the user. The smallest number is the most important: take the `min` of several."""

    P1 = 1
    P2 = 2
    P3 = 3


# The turns in which units leave, by their tag (`turn_to_leave`).
_TURNS: dict[Priority | None, int] = {Priority.P3: 0, Priority.P2: 1}
UNTAGGED = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """A tool call that an assistant's unit asks for; `arguments` is the JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Unit:
    """One piece of context, in the order of the request.

    `content` is the text that a strategy may shorten; `attached` goes with it as it is (calls, reasoning).
    `source_ids` are the messages a unit stands for, `inserted` marks the driver's own prompts: never the last
    user message, never P1. `framed` marks what a client puts before every conversation, such as example turns: no
    request of a person's, no rule, no fact. `spoken` marks a result that is a person's answer: it lays down rules as
    their messages do. `estimated_tokens` is of the whole unit, None until counted.
    """

    id: str
    role: Role
    content: str
    kind: Kind = Kind.MESSAGE
    timestamp: float = 0.0
    priority: Priority | None = None
    pinned: bool = False
    inserted: bool = False
    framed: bool = False
    spoken: bool = False
    round_id: str | None = None
    calls: tuple[Call, ...] = ()
    answers: str | None = None
    failed: bool | None = None  # a tool result's status, where the caller knows it
    attached: str = ""
    image_tokens: int = 0
    source_ids: tuple[str, ...] = ()
    estimated_tokens: int | None = None

    @property
    def sources(self) -> tuple[str, ...]:
        """The messages it stands for: itself, unless it was written by compaction."""
        return self.source_ids or (self.id,)

    def saying(self, content: str) -> Unit:
        """The same unit with other content, to be counted again."""
        return self if content == self.content else replace(self, content=content, estimated_tokens=None)


def synthetic_id(kind: str, source_ids: Iterable[str]) -> str:
    """An id that is the same for the same sources and differs for others: unique across runs without chance."""
    digest = hashlib.sha256("\n".join(source_ids).encode()).hexdigest()[:12]
    return f"{kind}-{digest}"


def all_sources(units: Iterable[Unit]) -> tuple[str, ...]:
    """The messages that the units stand for, each once, in order."""
    return tuple(dict.fromkeys(source for unit in units for source in unit.sources))


def written_for(gone: Sequence[Unit], kind: Kind, name: str, content: str, **fields: Any) -> Unit:
    """The uncounted unit that compaction writes in the place of others. Its id is made of `name` and its sources."""
    sources = all_sources(gone)
    known: dict[str, Any] = {
        "id": synthetic_id(name, sources),
        "timestamp": gone[-1].timestamp if gone else 0.0,
        "source_ids": sources,
    }
    return Unit(role=Role.USER, kind=kind, content=content, **known | fields)


def turn_to_leave(units: Iterable[Unit]) -> int:
    """When these units leave together: 0, first, if all are P3; 1 if all are P2 or P3; else 2, last.

    A person's tag counts before our own estimate of a message's worth.
    """
    return max((_TURNS.get(unit.priority, UNTAGGED) for unit in units), default=UNTAGGED)


def highest_priority(units: Iterable[Unit]) -> Priority | None:
    """The most important tag among them, None without tags."""
    return min((unit.priority for unit in units if unit.priority is not None), default=None)


@dataclass(frozen=True, kw_only=True)
class ContextState:
    """A context that is to fit into `limit`. Every unit has been counted (`ports.counted`).

    `overhead_tokens` is what is sent besides the units: tool schemas, the opening of the prompt, `answer_tokens` that
    are kept for the answer, and `ledger_tokens`, if a strategy is shown the state without its ledger. `room` is the
    limit that holds after the run, if that is another; else 0.
    `task` is the caller's statement of what it is all for, or empty; `asked` what a person said last, if no unit says
    it. `taken_back` are rules that a person took back: no ledger carries them. `laid_down` is a ledger of what came
    before the first unit: it is carried unless a unit says it. `originals` are the units that the run began with:
    another summary is made from these, not from a summary.
    """

    units: tuple[Unit, ...]
    limit: int
    overhead_tokens: int = 0
    ledger_tokens: int = 0
    answer_tokens: int = 0
    room: int = 0
    task: str = ""
    asked: str = ""
    taken_back: tuple[str, ...] = ()
    laid_down: tuple[Unit, ...] = ()
    originals: tuple[Unit, ...] = field(default=(), repr=False)
    config: ContextConfig = field(default_factory=ContextConfig)

    @cached_property
    def estimated_tokens(self) -> int:
        return self.overhead_tokens + total(self.units)

    @property
    def fits(self) -> bool:
        return self.estimated_tokens <= self.limit

    def with_units(self, units: Iterable[Unit]) -> ContextState:
        return replace(self, units=tuple(units))


# A run goes from state to state and looks at few of them again.
STATES_REMEMBERED = 8


class ByIdentity(Generic[T]):
    """Wraps an object so that caches compare it by identity: comparing many units costs more than most answers."""

    __slots__ = ("it",)

    def __init__(self, it: T) -> None:
        self.it = it

    def __hash__(self) -> int:
        return id(self.it)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByIdentity) and self.it is other.it


def once(find: Callable[[Sequence[Unit]], T]) -> Callable[[Sequence[Unit]], T]:
    """`find`, asked once of the same tuple. Units are frozen and the last few tuples are held, so no other tuple takes
    the place of one that is remembered. What is returned is shared, so it must not be changed.
    """

    @lru_cache(maxsize=STATES_REMEMBERED)
    def remembered(same: ByIdentity[tuple[Unit, ...]]) -> T:
        return find(same.it)

    @wraps(find)
    def asked(units: Sequence[Unit]) -> T:
        return remembered(ByIdentity(units)) if isinstance(units, tuple) else find(units)

    return asked


def total(units: Iterable[Unit]) -> int:
    """The sum of counted units; an uncounted one is an error of ours."""
    try:
        return sum([unit.estimated_tokens for unit in units])  # type: ignore[misc]  # None raises
    except TypeError as error:
        raise ValueError("a unit was not counted: pass units through ports.counted") from error


def rounds(units: Sequence[Unit]) -> list[tuple[Unit, ...]]:
    """The units in cuts: each round as one tuple, every other unit alone. In order of their first units."""
    cuts: dict[str, list[Unit]] = {}
    for unit in units:
        cuts.setdefault(f"round {unit.round_id}" if unit.round_id else f"unit {unit.id}", []).append(unit)
    return [tuple(cut) for cut in cuts.values()]


def tools_by_result(units: Iterable[Unit]) -> dict[str, str]:
    """The name of the tool by the id of the unit that holds its result. Call ids repeat between rounds."""
    units = tuple(units)
    names = {(unit.round_id, call.id): call.name for unit in units for call in unit.calls}
    found = {unit.id: names.get((unit.round_id, unit.answers)) for unit in units if unit.answers is not None}
    return {unit_id: name for unit_id, name in found.items() if name is not None}
