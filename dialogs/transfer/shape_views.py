"""What a dialog file holds of its context, as values: marks of messages, compaction runs with the views that they
made, moves, the snapshot of the task, and events.

Every number of tokens is estimated. Messages are named by `seq`, runs by a number of the file's own. Who did it and
whose agent it was is left out, as people are. Events are told as history: what steers the dialog that they happened in
(a loop that was seen, a fresh start that is offered) stays there. A change here is a new FORMAT.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from dialogs.models import MessageMark, ViewChange
from dialogs.transcript import model_view
from dialogs.transcript.model_view import HANDOVER
from dialogs.transcript.writes.marks import AREA_CHARS
from dialogs.transfer.place import Counted, LongText, Name, ShortText, Whole, list_of, one_of, reader, text, whole
from health.compaction.config import RecoveryMode
from health.compaction.snapshot import GOAL_CHARS, MOST_ACTIONS, MOST_OBSERVATIONS, OBSERVATION_CHARS, PHASES
from health.compaction.terms import outcome
from health.compaction.terms.outcome import Extent
from health.compaction.terms.units import Kind
from health.models import CompactionRun, ContextEvent

Status = CompactionRun.Status
# A run that is still under way, or waits for a person, belongs to its own dialog alone and is left out.
UNDER_WAY = (Status.QUEUED, Status.RUNNING, Status.DRAFT)
# The view of such a run holds, or may hold again.
HOLDS = (Status.APPLIED, Status.UNDONE)
OVER = one_of(status for status in Status.values if status not in UNDER_WAY)
PRIORITY = whole(min(MessageMark.Priority.values), max(MessageMark.Priority.values))
Code = ContextEvent.Code
# The longest text beside an event's numbers.
FACT_CHARS = 2_000
TRAVELS = tuple(code for code in Code if code is not Code.LOOP_DETECTED)


@dataclass(frozen=True, kw_only=True)
class MarkEntry:
    """What a person said about a message."""

    message: Counted
    pinned: bool
    priority: Annotated[int, PRIORITY] | None
    area: Annotated[str, text(AREA_CHARS)]
    marked_at: datetime


@dataclass(frozen=True, kw_only=True)
class SeenEntry:
    """One entry of a view, as `dialogs.transcript.model_view.Entry`: a message, perhaps shortened, or what
    compaction wrote."""

    message: Counted | None
    content: LongText | None
    kind: Annotated[str, one_of(["", HANDOVER, model_view.KIND, *Kind])]
    covers: tuple[Counted, ...]


@dataclass(frozen=True, kw_only=True)
class StepEntry:
    phase: Name
    estimated_before: Whole
    estimated_after: Whole
    changed: bool
    note: LongText
    ms: float


@dataclass(frozen=True, kw_only=True)
class TermEntry:
    """One line of where the limit comes from."""

    what: LongText
    tokens: Whole
    source: LongText


@dataclass(frozen=True, kw_only=True)
class ReceiptEntry:
    """How much of a removed message was read. `message` is null for a summary of an earlier run."""

    message: Counted | None
    extent: Annotated[str, one_of(Extent)]
    read: Whole
    total: Whole


@dataclass(frozen=True, kw_only=True)
class LossEntry:
    text: LongText
    kind: Name
    message: Counted | None
    kept: bool


@dataclass(frozen=True, kw_only=True)
class LedgerEntry:
    text: LongText
    kind: Name


@dataclass(frozen=True, kw_only=True)
class CompactionEntry:
    """A run that is over. `parent` is the run whose view it was made from, `leaf` the end of the branch then."""

    number: Counted
    course: Counted
    parent: Counted | None
    leaf: Counted
    turn: Whole
    trigger: Annotated[str, one_of(CompactionRun.Trigger.values)]
    status: Annotated[str, OVER]
    focus: LongText
    up_to_seq: Counted | None
    chain: Annotated[tuple[str, ...], list_of(reader(Name), most=100)]
    limit_tokens: Whole
    reserve_tokens: Whole
    limit_trace: tuple[TermEntry, ...]
    steps: tuple[StepEntry, ...]
    phase: Annotated[str, text(40)]
    tokens_now: Whole | None
    priority: Annotated[int, PRIORITY] | None
    priority_area: Annotated[str, text(AREA_CHARS)]
    estimated_before: Whole | None
    estimated_after: Whole | None
    messages_before: Whole | None
    messages_after: Whole | None
    counter: Annotated[str, text(60)]
    grade: Annotated[str, text(20)]
    embedder: Name
    coherence: float | None
    reward: float | None
    recovered: Annotated[str, one_of(["", *RecoveryMode])]
    view: tuple[SeenEntry, ...]
    removed: tuple[Counted, ...]
    coverage: tuple[ReceiptEntry, ...]
    losses: tuple[LossEntry, ...]
    ledger: tuple[LedgerEntry, ...]
    warnings: tuple[LongText, ...]
    code: Annotated[str, one_of(["", *outcome.Code])]
    reason: LongText
    queued_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class ViewChangeEntry:
    """The view of a course became another one; null is the course as it was said."""

    course: Counted
    before: Counted | None
    after: Counted | None
    why: Annotated[str, one_of(ViewChange.Why.values)]
    changed_at: datetime


@dataclass(frozen=True, kw_only=True)
class TaskEntry:
    """As `health.compaction.snapshot.TaskSnapshot`."""

    goal: Annotated[str, text(GOAL_CHARS)]
    current_phase: Annotated[str, one_of(PHASES)]
    completed_actions: Annotated[tuple[str, ...], list_of(text(200), most=MOST_ACTIONS)]
    key_observations: Annotated[tuple[str, ...], list_of(text(OBSERVATION_CHARS), most=MOST_OBSERVATIONS)]
    earlier_actions: Whole


@dataclass(frozen=True, kw_only=True)
class EventEntry:
    """`course`, `message` (by `seq`) and `turn` say where it happened, `run` in which compaction; null: not noted."""

    code: Annotated[str, one_of(TRAVELS)]
    run: Counted | None
    llm: ShortText
    estimated: Whole | None
    limit: Whole | None
    course: Counted | None
    message: Counted | None
    turn: Whole | None
    trigger: Annotated[str, one_of(["", *CompactionRun.Trigger.values])]
    cause: Annotated[str, text(FACT_CHARS)]
    reason: Annotated[str, text(FACT_CHARS)]
    compactions: Whole | None
    happened_at: datetime
