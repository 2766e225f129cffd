"""The schema of a dialog file. The field names are the JSON's keys; a change needs a new FORMAT.

Entries refer to each other by the dialog's own numbers (`seq`, `course`), never by database ids. `importing.py` lists
the older formats that can be read. Compactions, the task and events are in `shape_views.py`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag

from dialogs.agents.writes import REMINDER_CHARS, TASKDOC_CHARS
from dialogs.common.file_fields import (
    MAX_ENTRIES,
    Chars,
    Count,
    Counted,
    Flag,
    JsonObject,
    LongText,
    Many,
    Moment,
    OneOf,
    Positive,
    Record,
    ShortText,
    Whole,
    no_crowd,
    whole,
)
from dialogs.models import AutonomousRun, Course, Generation, Question, RemediationPrompt, ToolCall
from dialogs.models.dialog import COUNTDOWN_TURNS, OwnTools, WorkLanguage
from dialogs.models.llm import Compaction, WindowSource
from dialogs.models.message import MessageOrigin, Role
from dialogs.models.reminder import Author
from dialogs.transcript.writes.dialog_row import SENT_KEYS
from dialogs.transcript.writes.marks import MOST_RULES, RULE_CHARS
from dialogs.transfer.references import CourseNumber, MessageSeq, ReminderNumber, RunNumber, TextIndex
from dialogs.transfer.shape_views import CompactionEntry, EventEntry, MarkEntry, TaskEntry, ViewChangeEntry
from dialogs.turns.writes.autonomous import GOAL_CHARS, MAX_GENERATIONS
from health.models import HealthReading
from health.monitor.levels import Level
from health.monitor.remediation import Due

FORMAT = "dominds.dialog/8"
# Written in place of token counts when the provider reported none.
UNAVAILABLE: Literal["unavailable"] = "unavailable"
# A course's level is never unknown: a generation without usage leaves it as it was.
MEASURED = OneOf(level for level in Level if level is not Level.UNKNOWN)


class CallPlace(Record):
    """A tool call, by its message and its position there."""

    message: MessageSeq
    position: Whole


class CarriedEntry(Record):
    """What was carried into a course: reminders by number, the unanswered message by `seq`, questions by call."""

    reminders: Many[ReminderNumber]
    taskdoc: Flag
    request: MessageSeq | None
    questions: Many[CallPlace]


class CourseEntry(Record):
    number: Counted
    opened_by: Annotated[str, OneOf(Course.OpenedBy.values)]
    opened_at: Moment
    carried: CarriedEntry | None
    level: Annotated[str, MEASURED]
    caution_generations: Count
    countdown_turns: Annotated[int, whole(0, COUNTDOWN_TURNS)]
    due: Annotated[str, OneOf(Due)]
    # The compaction whose view is in force; null: none.
    head: RunNumber | None
    guard_held: Flag


class MessageEntry(Record):
    seq: Counted
    parent: MessageSeq | None
    course: CourseNumber
    turn: Count
    role: Annotated[str, OneOf(Role.values)]
    origin: Annotated[str, OneOf(MessageOrigin.values)]
    content: LongText
    parts: JsonObject
    cut_short: Flag
    created_at: Moment


class UsageEntry(Record):
    prompt_tokens: Whole
    completion_tokens: Whole
    total_tokens: Whole
    cached_tokens: Whole | None


def _usage_kind(value: object) -> str:
    return ":unavailable" if value == UNAVAILABLE else ":counted"


Usage = Annotated[
    Annotated[UsageEntry, Tag(":counted")] | Annotated[Literal["unavailable"], Tag(":unavailable")],
    Discriminator(_usage_kind),
]


class ReadingEntry(Record):
    """The reading of one generation, with the window and thresholds by which it was made."""

    level: Annotated[str, OneOf(HealthReading.Level.values)]
    reason: Annotated[str, OneOf(["", *HealthReading.Reason.values])]
    context_window: Positive | None
    window_source: Annotated[str, OneOf(["", *WindowSource.values])]
    optimal_max_tokens: Positive | None
    optimal_configured: Flag
    critical_max_tokens: Positive | None
    critical_configured: Flag
    read_at: Moment


class SentEntry(Record):
    """What the provider was sent: messages by `seq`, other texts by their index in the file's `texts`.

    `view`: the compaction whose view was in force. `estimated`: the estimated tokens.
    """

    messages: Many[MessageSeq]
    texts: Annotated[dict[Annotated[str, OneOf(SENT_KEYS)], TextIndex], BeforeValidator(no_crowd)]
    options: JsonObject
    view: RunNumber | None
    estimated: Whole | None


class GenerationEntry(Record):
    course: CourseNumber
    number: Counted
    turn: Count
    attempt: Counted
    llm: ShortText
    prompt_leaf: MessageSeq
    message: MessageSeq | None
    status: Annotated[str, OneOf(Generation.Status.values)]
    sent: SentEntry
    partial_text: LongText
    partial_reasoning: LongText
    usage: Usage
    usage_raw: JsonObject | None
    reading: ReadingEntry | None
    finish_reason: Annotated[str, Chars(60)]
    error_code: Annotated[str, Chars(60)]
    error_message: LongText
    started_at: Moment
    first_token_at: Moment | None
    finished_at: Moment | None


class QueuedEntry(Record):
    content: LongText
    created_at: Moment


class ReminderEntry(Record):
    number: Counted
    content: Annotated[str, Chars(REMINDER_CHARS, least=1)]
    position: Count
    author: Annotated[str, OneOf(Author.values)]
    course: CourseNumber | None
    is_continuation: Flag
    created_at: Moment
    updated_at: Moment
    removed_at: Moment | None


class RuleEntry(Record):
    """A standing rule written by hand; if not `holds`, one that was taken back."""

    text: Annotated[str, Chars(RULE_CHARS, least=1)]
    holds: Flag
    at: Moment


class QuestionEntry(Record):
    """The question of a call to the person."""

    text: LongText
    choices: Annotated[Many[LongText], Field(max_length=100)]
    status: Annotated[str, OneOf(Question.Status.values)]
    answer: LongText
    asked_at: Moment
    answered_at: Moment | None


class CallEntry(Record):
    """A tool call. `result` is its text until there is a `result_message` (by `seq`)."""

    message: MessageSeq
    position: Whole
    # Some clients send an empty one: see `laws.py`.
    call_id: Annotated[str, Chars(200)]
    name: Annotated[str, Chars(200)]
    arguments: LongText
    status: Annotated[str, OneOf(ToolCall.Status.values)]
    idempotent: Flag
    result: LongText
    result_message: MessageSeq | None
    started_at: Moment | None
    finished_at: Moment | None
    question: QuestionEntry | None


class PromptEntry(Record):
    """A remediation prompt. It belongs to the course of its message."""

    message: MessageSeq
    level: Annotated[str, OneOf(RemediationPrompt.Level.values)]
    remaining: Annotated[int, whole(0, COUNTDOWN_TURNS)] | None
    notice: LongText
    curated: Flag | None
    created_at: Moment


class RunEntry(Record):
    """A run of autonomous mode."""

    goal: Annotated[str, Chars(GOAL_CHARS, least=1)]
    max_generations: Annotated[int, whole(1, MAX_GENERATIONS)]
    generations: Count
    first_course: CourseNumber
    started_at: Moment
    ended_at: Moment | None
    ended_by: Annotated[str, OneOf(["", *AutonomousRun.EndedBy.values])]
    summary: LongText


class ClientEntry(Record):
    """The newest request of the client, without its messages."""

    model: ShortText
    instructions: LongText
    tools: Many[JsonObject]
    options: JsonObject
    max_output_tokens: Positive | None
    offers_recall: Flag
    chat: Annotated[str, Chars(200)]


class DialogFile(Record):
    format: Annotated[str, OneOf([FORMAT])]
    exported_at: Moment
    title: Annotated[str, Chars(200)]
    titled_by_person: Flag
    agent: ShortText
    llm: ShortText
    work_language: Annotated[str, OneOf(WorkLanguage.values)]
    compaction: Annotated[str, OneOf(Compaction.values)]
    own_tools: Annotated[str, OneOf(OwnTools.values)]
    taskdoc: Annotated[str, Chars(TASKDOC_CHARS)]
    created_at: Moment
    active_at: Moment
    current_leaf: MessageSeq | None
    courses: Annotated[Many[CourseEntry], Field(min_length=1)]
    messages: Many[MessageEntry]
    generations: Many[GenerationEntry]
    queued: Many[QueuedEntry]
    reminders: Many[ReminderEntry]
    standing_rules: Annotated[Many[RuleEntry], Field(max_length=MOST_RULES)]
    calls: Many[CallEntry]
    prompts: Many[PromptEntry]
    runs: Many[RunEntry]
    marks: Many[MarkEntry]
    compactions: Many[CompactionEntry]
    view_changes: Many[ViewChangeEntry]
    # The texts that generations sent beside messages, each once.
    texts: Annotated[Many[LongText], Field(max_length=5 * MAX_ENTRIES)]
    # Of a dialog that a client drives.
    client: ClientEntry | None
    # The task snapshot; null where no task has begun.
    task: TaskEntry | None
    events: Many[EventEntry]
