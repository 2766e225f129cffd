"""What a dialog file holds: the field names of the JSON, as values, and what each must be. A change is a new FORMAT.

Rows refer to each other by numbers of the dialog's own (`seq`, `course`), never by database ids. `reading.py` says
which older formats are read too. What is of compaction, of the task and of events is in `shape_views.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from dialogs.agents.writes import REMINDER_CHARS, TASKDOC_CHARS
from dialogs.models import AutonomousRun, Course, Generation, Question, RemediationPrompt, ToolCall
from dialogs.models.dialog import COUNTDOWN_TURNS, Author, OwnTools, WorkLanguage
from dialogs.models.llm import Compaction, WindowSource
from dialogs.models.message import MessageOrigin, Role
from dialogs.transcript.writes.standing_rules import MOST_RULES, RULE_CHARS
from dialogs.transcript.writes.trash import SENT_KEYS
from dialogs.transfer.place import (
    MAX_ENTRIES,
    Count,
    Counted,
    LongText,
    Place,
    Positive,
    ShortText,
    Whole,
    list_of,
    one_of,
    reader,
    record,
    text,
    whole,
)
from dialogs.transfer.shape_views import CompactionEntry, EventEntry, MarkEntry, TaskEntry, ViewChangeEntry
from dialogs.turns.writes.autonomous import GOAL_CHARS, MAX_GENERATIONS
from health.models import HealthReading
from health.monitor.levels import Level
from health.monitor.remediation import Due

FORMAT = "dominds.dialog/8"
# Written in place of token counts when the provider reported none.
UNAVAILABLE = "unavailable"
# What was not measured leaves the level as it was: a course is never unknown.
MEASURED = one_of(level for level in Level if level is not Level.UNKNOWN)


@dataclass(frozen=True, kw_only=True)
class CallPlace:
    """A tool call by the message that made it and its place there."""

    message: Counted
    position: Whole


@dataclass(frozen=True, kw_only=True)
class CarriedEntry:
    """What came along into a course: reminders by number, the unanswered message by `seq`, questions by call."""

    reminders: tuple[Counted, ...]
    taskdoc: bool
    request: Counted | None
    questions: tuple[CallPlace, ...]


@dataclass(frozen=True, kw_only=True)
class CourseEntry:
    number: Counted
    opened_by: Annotated[str, one_of(Course.OpenedBy.values)]
    opened_at: datetime
    carried: CarriedEntry | None
    level: Annotated[str, MEASURED]
    caution_generations: Count
    countdown_turns: Annotated[int, whole(0, COUNTDOWN_TURNS)]
    due: Annotated[str, one_of(Due)]
    # The compaction whose view holds; null is the course as it was said.
    head: Counted | None
    guard_held: bool


@dataclass(frozen=True, kw_only=True)
class MessageEntry:
    seq: Counted
    parent: Counted | None
    course: Counted
    turn: Count
    role: Annotated[str, one_of(Role.values)]
    origin: Annotated[str, one_of(MessageOrigin.values)]
    content: LongText
    parts: dict[str, Any]
    cut_short: bool
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class UsageEntry:
    prompt_tokens: Whole
    completion_tokens: Whole
    total_tokens: Whole
    cached_tokens: Whole | None


@dataclass(frozen=True, kw_only=True)
class ReadingEntry:
    """The verdict on one generation, with the window and the ceilings that it was judged by."""

    level: Annotated[str, one_of(HealthReading.Level.values)]
    reason: Annotated[str, one_of(["", *HealthReading.Reason.values])]
    context_window: Positive | None
    window_source: Annotated[str, one_of(["", *WindowSource.values])]
    optimal_max_tokens: Positive | None
    optimal_configured: bool
    critical_max_tokens: Positive | None
    critical_configured: bool
    read_at: datetime


def sent_texts(place: Place) -> dict[str, int]:
    """An object with some of the texts' names."""
    present = [key for key in SENT_KEYS if isinstance(place.value, dict) and key in place.value]
    return record(place, dict.fromkeys(present, whole()))


@dataclass(frozen=True, kw_only=True)
class SentEntry:
    """What the provider was sent: messages by `seq`, other texts by their index in the file's `texts`.

    `view` is the compaction whose view of the messages it was, `estimated` how many tokens we thought it would take.
    """

    messages: tuple[Counted, ...]
    texts: Annotated[dict[str, int], sent_texts]
    options: dict[str, Any]
    view: Counted | None
    estimated: Whole | None


def usage(place: Place) -> UsageEntry | str:
    read: UsageEntry | str = UNAVAILABLE if place.value == UNAVAILABLE else reader(UsageEntry)(place)
    return read


@dataclass(frozen=True, kw_only=True)
class GenerationEntry:
    course: Counted
    number: Counted
    turn: Count
    attempt: Counted
    llm: ShortText
    prompt_leaf: Counted
    message: Counted | None
    status: Annotated[str, one_of(Generation.Status.values)]
    sent: SentEntry
    partial_text: LongText
    partial_reasoning: LongText
    usage: Annotated[UsageEntry | str, usage]
    usage_raw: dict[str, Any] | None
    reading: ReadingEntry | None
    finish_reason: Annotated[str, text(60)]
    error_code: Annotated[str, text(60)]
    error_message: LongText
    started_at: datetime
    first_token_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class QueuedEntry:
    content: LongText
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class ReminderEntry:
    number: Counted
    content: Annotated[str, text(REMINDER_CHARS, least=1)]
    position: Count
    author: Annotated[str, one_of(Author.values)]
    course: Counted | None
    is_continuation: bool
    created_at: datetime
    updated_at: datetime
    removed_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class RuleEntry:
    """A standing rule that a person laid down by hand; not `holds`: one that was taken back."""

    text: Annotated[str, text(RULE_CHARS, least=1)]
    holds: bool
    at: datetime


@dataclass(frozen=True, kw_only=True)
class QuestionEntry:
    """What a call asked the person."""

    text: LongText
    choices: Annotated[tuple[str, ...], list_of(reader(LongText), most=100)]
    status: Annotated[str, one_of(Question.Status.values)]
    answer: LongText
    asked_at: datetime
    answered_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class CallEntry:
    """A tool call. `result` holds its text until `result_message`, by `seq`, does."""

    message: Counted
    position: Whole
    # Some clients name none: see `laws.py`.
    call_id: Annotated[str, text(200)]
    name: Annotated[str, text(200)]
    arguments: LongText
    status: Annotated[str, one_of(ToolCall.Status.values)]
    idempotent: bool
    result: LongText
    result_message: Counted | None
    started_at: datetime | None
    finished_at: datetime | None
    question: QuestionEntry | None


@dataclass(frozen=True, kw_only=True)
class PromptEntry:
    """A remediation prompt. It belongs to the course of its message."""

    message: Counted
    level: Annotated[str, one_of(RemediationPrompt.Level.values)]
    remaining: Annotated[int, whole(0, COUNTDOWN_TURNS)] | None
    notice: LongText
    curated: bool | None
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class RunEntry:
    """A run of autonomous mode."""

    goal: Annotated[str, text(GOAL_CHARS, least=1)]
    max_generations: Annotated[int, whole(1, MAX_GENERATIONS)]
    generations: Count
    first_course: Counted
    started_at: datetime
    ended_at: datetime | None
    ended_by: Annotated[str, one_of(["", *AutonomousRun.EndedBy.values])]
    summary: LongText


@dataclass(frozen=True, kw_only=True)
class ClientEntry:
    """What its newest request asked for, beside its messages."""

    model: ShortText
    instructions: LongText
    tools: tuple[dict[str, Any], ...]
    options: dict[str, Any]
    max_output_tokens: Positive | None
    offers_recall: bool
    chat: Annotated[str, text(200)]


@dataclass(frozen=True, kw_only=True)
class DialogFile:
    format: Annotated[str, one_of([FORMAT])]
    exported_at: datetime
    title: Annotated[str, text(200)]
    titled_by_person: bool
    agent: ShortText
    llm: ShortText
    work_language: Annotated[str, one_of(WorkLanguage.values)]
    compaction: Annotated[str, one_of(Compaction.values)] = Compaction.AUTOMATIC.value
    own_tools: Annotated[str, one_of(OwnTools.values)] = OwnTools.AUTOMATIC.value
    taskdoc: Annotated[str, text(TASKDOC_CHARS)]
    created_at: datetime
    active_at: datetime
    current_leaf: Counted | None
    courses: tuple[CourseEntry, ...]
    messages: tuple[MessageEntry, ...]
    generations: tuple[GenerationEntry, ...]
    queued: tuple[QueuedEntry, ...]
    reminders: tuple[ReminderEntry, ...]
    standing_rules: Annotated[tuple[RuleEntry, ...], list_of(reader(RuleEntry), most=MOST_RULES)] = ()
    calls: tuple[CallEntry, ...]
    prompts: tuple[PromptEntry, ...]
    runs: tuple[RunEntry, ...]
    marks: tuple[MarkEntry, ...]
    compactions: tuple[CompactionEntry, ...]
    view_changes: tuple[ViewChangeEntry, ...]
    # What generations sent beside messages, each text once: a long dialog sends the same ones again and again.
    texts: Annotated[tuple[str, ...], list_of(reader(LongText), most=5 * MAX_ENTRIES)]
    # Of a dialog that a client drives.
    client: ClientEntry | None
    # How far the present task is; null where none has begun.
    task: TaskEntry | None
    events: tuple[EventEntry, ...]
