"""The schema of a dialog file, second part: marks of messages, compaction runs with their views, changes of view, the
task snapshot, and events. A change here needs a new FORMAT.

All numbers of tokens are estimated. Messages are referred to by `seq`, runs by a number in the file. People are left
out. Events are only history: those that steer their dialog (a detected loop) are not exported.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dialogs.common.file_fields import (
    Chars,
    Counted,
    Flag,
    LongText,
    Many,
    Moment,
    Name,
    Number,
    OneOf,
    Record,
    ShortText,
    Whole,
    whole,
)
from dialogs.models import MessageMark, ViewChange
from dialogs.transcript import model_view
from dialogs.transcript.model_view import HANDOVER
from dialogs.transcript.writes.marks import AREA_CHARS
from dialogs.transfer.references import CourseNumber, MessageSeq, RunNumber
from health.compaction.config import RecoveryMode
from health.compaction.snapshot import GOAL_CHARS, MOST_ACTIONS, MOST_OBSERVATIONS, OBSERVATION_CHARS, PHASES
from health.compaction.terms import outcome
from health.compaction.terms.outcome import Extent
from health.compaction.terms.units import Kind
from health.models import CompactionRun, ContextEvent

Status = CompactionRun.Status
# Runs under way, or waiting for a person, are not exported.
UNDER_WAY = (Status.QUEUED, Status.RUNNING, Status.DRAFT)
# Runs whose view is, or may again be, in force.
HOLDS = (Status.APPLIED, Status.UNDONE)
ENDED = OneOf(status for status in Status.values if status not in UNDER_WAY)
PRIORITY = whole(min(MessageMark.Priority.values), max(MessageMark.Priority.values))
Code = ContextEvent.Code
# The longest text beside an event's numbers.
FACT_CHARS = 2_000
EXPORTED_CODES = tuple(code for code in Code if code is not Code.LOOP_DETECTED)


class MarkEntry(Record):
    """A person's mark on a message."""

    message: MessageSeq
    pinned: Flag
    priority: Annotated[int, PRIORITY] | None
    area: Annotated[str, Chars(AREA_CHARS)]
    marked_at: Moment


class ViewEntry(Record):
    """One entry of a view, as `dialogs.transcript.model_view.Entry`: a message, perhaps shortened, or a text that
    compaction wrote."""

    message: MessageSeq | None
    content: LongText | None
    kind: Annotated[str, OneOf(["", HANDOVER, model_view.KIND, *Kind])]
    covers: Many[MessageSeq]


class StepEntry(Record):
    phase: Name
    estimated_before: Whole
    estimated_after: Whole
    changed: Flag
    note: LongText
    ms: Number


class TermEntry(Record):
    """One line of the limit's trace."""

    what: LongText
    tokens: Whole
    source: LongText


class ReceiptEntry(Record):
    """How much of a removed message was read. `message` is null for a summary of an earlier run."""

    message: MessageSeq | None
    extent: Annotated[str, OneOf(Extent)]
    read: Whole
    total: Whole


class LossEntry(Record):
    text: LongText
    kind: Name
    message: MessageSeq | None
    kept: Flag


class LedgerEntry(Record):
    text: LongText
    kind: Name


class CompactionEntry(Record):
    """An ended run. `parent`: the run from whose view it was made. `leaf`: the end of the branch then."""

    number: Counted
    course: CourseNumber
    parent: RunNumber | None
    leaf: MessageSeq
    turn: Whole
    trigger: Annotated[str, OneOf(CompactionRun.Trigger.values)]
    status: Annotated[str, ENDED]
    focus: LongText
    up_to_seq: Counted | None
    chain: Annotated[Many[Name], Field(max_length=100)]
    limit_tokens: Whole
    reserve_tokens: Whole
    limit_trace: Many[TermEntry]
    steps: Many[StepEntry]
    phase: Annotated[str, Chars(40)]
    tokens_now: Whole | None
    priority: Annotated[int, PRIORITY] | None
    priority_area: Annotated[str, Chars(AREA_CHARS)]
    estimated_before: Whole | None
    estimated_after: Whole | None
    messages_before: Whole | None
    messages_after: Whole | None
    counter: Annotated[str, Chars(60)]
    grade: Annotated[str, Chars(20)]
    embedder: Name
    coherence: Number | None
    reward: Number | None
    recovered: Annotated[str, OneOf(["", *RecoveryMode])]
    view: Many[ViewEntry]
    removed: Many[MessageSeq]
    coverage: Many[ReceiptEntry]
    losses: Many[LossEntry]
    ledger: Many[LedgerEntry]
    warnings: Many[LongText]
    code: Annotated[str, OneOf(["", *outcome.Code])]
    reason: LongText
    queued_at: Moment
    started_at: Moment | None
    finished_at: Moment | None


class ViewChangeEntry(Record):
    """A course's view changed from one run's to another's; null: no view."""

    course: CourseNumber
    before: RunNumber | None
    after: RunNumber | None
    why: Annotated[str, OneOf(ViewChange.Why.values)]
    changed_at: Moment


class TaskEntry(Record):
    """As `health.compaction.snapshot.TaskSnapshot`."""

    goal: Annotated[str, Chars(GOAL_CHARS)]
    current_phase: Annotated[str, OneOf(PHASES)]
    completed_actions: Annotated[Many[Annotated[str, Chars(200)]], Field(max_length=MOST_ACTIONS)]
    key_observations: Annotated[Many[Annotated[str, Chars(OBSERVATION_CHARS)]], Field(max_length=MOST_OBSERVATIONS)]
    earlier_actions: Whole


class EventEntry(Record):
    """`course`, `message` (by `seq`), `turn` and `run` (a compaction) say where it happened; null: unknown."""

    code: Annotated[str, OneOf(EXPORTED_CODES)]
    run: RunNumber | None
    llm: ShortText
    estimated: Whole | None
    limit: Whole | None
    course: CourseNumber | None
    message: MessageSeq | None
    turn: Whole | None
    trigger: Annotated[str, OneOf(["", *CompactionRun.Trigger.values])]
    cause: Annotated[str, Chars(FACT_CHARS)]
    reason: Annotated[str, Chars(FACT_CHARS)]
    compactions: Whole | None
    happened_at: Moment
