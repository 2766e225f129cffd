"""What a dialog file holds: the field names of the JSON, as values. A change here is a new FORMAT.

Rows refer to each other by numbers of the dialog's own (`seq`, `course`), never by database ids.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

FORMAT = "dominds.dialog/1"
# Written in place of token counts when the provider reported none.
UNAVAILABLE = "unavailable"


@dataclass(frozen=True, kw_only=True)
class CourseEntry:
    number: int
    opened_by: str
    opened_at: datetime


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
    """What the provider was sent: messages by `seq`, and the instructions as text."""

    messages: tuple[int, ...]
    instructions: str | None
    options: dict[str, Any]


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
class DialogFile:
    format: str
    exported_at: datetime
    title: str
    titled_by_person: bool
    agent: str
    llm: str
    created_at: datetime
    active_at: datetime
    current_leaf: int | None
    courses: tuple[CourseEntry, ...]
    messages: tuple[MessageEntry, ...]
    generations: tuple[GenerationEntry, ...]
    queued: tuple[QueuedEntry, ...]
