"""What a dialog file holds of compaction, as values: marks of messages, runs with the views that they made, moves.

Every number of tokens is estimated. Messages are named by `seq`, runs by a number of the file's own. Who did it is
left out, as people are. A change here is a new FORMAT.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from health.models import CompactionRun

Status = CompactionRun.Status
# What is still under way, or waits for a person, belongs to the dialog that it is in alone.
UNDER_WAY = (Status.QUEUED, Status.RUNNING, Status.DRAFT)
# Its view holds, or may hold again.
HOLDS = (Status.APPLIED, Status.UNDONE)


@dataclass(frozen=True, kw_only=True)
class MarkEntry:
    """What a person said about a message."""

    message: int
    pinned: bool
    priority: int | None
    area: str
    marked_at: datetime


@dataclass(frozen=True, kw_only=True)
class SeenEntry:
    """One entry of a view, as `dialogs.transcript.model_view.Entry`: a message, perhaps shortened, or what
    compaction wrote."""

    message: int | None
    content: str | None
    kind: str
    covers: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class StepEntry:
    phase: str
    estimated_before: int
    estimated_after: int
    changed: bool
    note: str
    ms: float


@dataclass(frozen=True, kw_only=True)
class TermEntry:
    """One line of where the limit comes from."""

    what: str
    tokens: int
    source: str


@dataclass(frozen=True, kw_only=True)
class ReceiptEntry:
    """How much of a removed message was read. `message` is null for a summary of an earlier run."""

    message: int | None
    extent: str
    read: int
    total: int


@dataclass(frozen=True, kw_only=True)
class LossEntry:
    text: str
    kind: str
    message: int | None
    kept: bool


@dataclass(frozen=True, kw_only=True)
class LedgerEntry:
    text: str
    kind: str


@dataclass(frozen=True, kw_only=True)
class CompactionEntry:
    """A run that is over. `parent` is the run whose view it was made from, `leaf` the end of the branch then."""

    number: int
    course: int
    parent: int | None
    leaf: int
    turn: int
    trigger: str
    status: str
    focus: str
    up_to_seq: int | None
    chain: tuple[str, ...]
    limit_tokens: int
    reserve_tokens: int
    limit_trace: tuple[TermEntry, ...]
    steps: tuple[StepEntry, ...]
    phase: str
    tokens_now: int | None
    priority: int | None
    priority_area: str
    estimated_before: int | None
    estimated_after: int | None
    messages_before: int | None
    messages_after: int | None
    counter: str
    grade: str
    embedder: str
    coherence: float | None
    reward: float | None
    recovered: str
    view: tuple[SeenEntry, ...]
    removed: tuple[int, ...]
    coverage: tuple[ReceiptEntry, ...]
    losses: tuple[LossEntry, ...]
    ledger: tuple[LedgerEntry, ...]
    warnings: tuple[str, ...]
    code: str
    reason: str
    queued_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class ViewChangeEntry:
    """The view of a course became another one; null is the course as it was said."""

    course: int
    before: int | None
    after: int | None
    why: str
    changed_at: datetime
