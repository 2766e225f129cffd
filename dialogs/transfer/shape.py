"""What a dialog file holds: the field names of the JSON, as values. A change here is a new FORMAT.

Rows refer to each other by numbers of the dialog's own (`seq`, `course`), never by database ids. Files of the
older formats are read too: what they lack has a default here. What is of compaction is in `shape_views.py`,
of the task and of events in `shape_events.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dialogs.models.dialog import OwnTools, WorkLanguage
from dialogs.models.llm import Compaction
from dialogs.transfer.shape_events import EventEntry, TaskEntry
from dialogs.transfer.shape_views import CompactionEntry, MarkEntry, ViewChangeEntry
from health.monitor.levels import Level
from health.monitor.remediation import COUNTDOWN_TURNS, Due

FORMAT = "dominds.dialog/8"
# From before Dominds' own tools could be switched off.
SEVENTH_FORMAT = "dominds.dialog/7"
# From before standing rules were changed by hand.
SIXTH_FORMAT = "dominds.dialog/6"
# From before compaction could be switched off.
FIFTH_FORMAT = "dominds.dialog/5"
# From before tasks and events were told.
FOURTH_FORMAT = "dominds.dialog/4"
# From before clients drove dialogs.
THIRD_FORMAT = "dominds.dialog/3"
# From before there was compaction.
SECOND_FORMAT = "dominds.dialog/2"
# From before there were tools.
FIRST_FORMAT = "dominds.dialog/1"
# Written in place of token counts when the provider reported none.
UNAVAILABLE = "unavailable"


@dataclass(frozen=True, kw_only=True)
class CallPlace:
    """A tool call by the message that made it and its place there."""

    message: int
    position: int


@dataclass(frozen=True, kw_only=True)
class CarriedEntry:
    """What came along into a course: reminders by number, the unanswered message by `seq`, questions by call."""

    reminders: tuple[int, ...]
    taskdoc: bool
    request: int | None
    questions: tuple[CallPlace, ...]


@dataclass(frozen=True, kw_only=True)
class CourseEntry:
    number: int
    opened_by: str
    opened_at: datetime
    carried: CarriedEntry | None = None
    level: str = Level.HEALTHY.value
    caution_generations: int = 0
    countdown_turns: int = COUNTDOWN_TURNS
    due: str = Due.NOTHING.value
    # The compaction whose view holds; null is the course as it was said.
    head: int | None = None
    guard_held: bool = False


@dataclass(frozen=True, kw_only=True)
class MessageEntry:
    seq: int
    parent: int | None
    course: int
    turn: int
    role: str
    origin: str
    content: str
    parts: dict[str, Any]
    cut_short: bool
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class UsageEntry:
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    cached_tokens: int | None


@dataclass(frozen=True, kw_only=True)
class ReadingEntry:
    """The verdict on one generation, with the window and the ceilings that it was judged by."""

    level: str
    reason: str
    context_window: int | None
    window_source: str
    optimal_max_tokens: int | None
    optimal_configured: bool
    critical_max_tokens: int | None
    critical_configured: bool
    read_at: datetime


@dataclass(frozen=True, kw_only=True)
class SentEntry:
    """What the provider was sent: messages by `seq`, other texts by their index in the file's `texts`.

    `view` is the compaction whose view of the messages it was, `estimated` how many tokens we thought it would take.
    """

    messages: tuple[int, ...]
    texts: dict[str, int]
    options: dict[str, Any]
    view: int | None = None
    estimated: int | None = None


@dataclass(frozen=True, kw_only=True)
class GenerationEntry:
    course: int
    number: int
    turn: int
    attempt: int
    llm: str
    prompt_leaf: int
    message: int | None
    status: str
    sent: SentEntry
    partial_text: str
    partial_reasoning: str
    usage: UsageEntry | str
    usage_raw: dict[str, Any] | None
    reading: ReadingEntry | None
    finish_reason: str
    error_code: str
    error_message: str
    started_at: datetime
    first_token_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class QueuedEntry:
    content: str
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class ReminderEntry:
    number: int
    content: str
    position: int
    author: str
    course: int | None
    is_continuation: bool
    created_at: datetime
    updated_at: datetime
    removed_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class RuleEntry:
    """A standing rule that a person laid down by hand; not `holds`: one that was taken back."""

    text: str
    holds: bool
    at: datetime


@dataclass(frozen=True, kw_only=True)
class QuestionEntry:
    """What a call asked the person."""

    text: str
    choices: tuple[str, ...]
    status: str
    answer: str
    asked_at: datetime
    answered_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class CallEntry:
    """A tool call. `result` holds its text until `result_message`, by `seq`, does."""

    message: int
    position: int
    call_id: str
    name: str
    arguments: str
    status: str
    idempotent: bool
    result: str
    result_message: int | None
    started_at: datetime | None
    finished_at: datetime | None
    question: QuestionEntry | None


@dataclass(frozen=True, kw_only=True)
class PromptEntry:
    """A remediation prompt. It belongs to the course of its message."""

    message: int
    level: str
    remaining: int | None
    notice: str
    curated: bool | None
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class RunEntry:
    """A run of autonomous mode."""

    goal: str
    max_generations: int
    generations: int
    first_course: int
    started_at: datetime
    ended_at: datetime | None
    ended_by: str
    summary: str


@dataclass(frozen=True, kw_only=True)
class DialogFile:
    format: str
    exported_at: datetime
    title: str
    titled_by_person: bool
    agent: str
    llm: str
    work_language: str = WorkLanguage.ENGLISH.value
    compaction: str = Compaction.AUTOMATIC.value
    own_tools: str = OwnTools.AUTOMATIC.value
    taskdoc: str = ""
    created_at: datetime
    active_at: datetime
    current_leaf: int | None
    courses: tuple[CourseEntry, ...]
    messages: tuple[MessageEntry, ...]
    generations: tuple[GenerationEntry, ...]
    queued: tuple[QueuedEntry, ...]
    reminders: tuple[ReminderEntry, ...] = ()
    standing_rules: tuple[RuleEntry, ...] = ()
    calls: tuple[CallEntry, ...] = ()
    prompts: tuple[PromptEntry, ...] = ()
    runs: tuple[RunEntry, ...] = ()
    marks: tuple[MarkEntry, ...] = ()
    compactions: tuple[CompactionEntry, ...] = ()
    view_changes: tuple[ViewChangeEntry, ...] = ()
    # What generations sent beside messages, each text once: a long dialog sends the same ones again and again.
    texts: tuple[str, ...] = ()
    # Of a dialog that a client drives.
    client: ClientEntry | None = None
    # How far the present task is; null where none has begun.
    task: TaskEntry | None = None
    events: tuple[EventEntry, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ClientEntry:
    """What its newest request asked for, beside its messages."""

    model: str
    instructions: str
    tools: tuple[dict[str, Any], ...]
    options: dict[str, Any]
    max_output_tokens: int | None
    offers_recall: bool
    chat: str
