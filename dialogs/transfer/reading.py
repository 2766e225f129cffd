"""A dialog file from outside, checked field by field and as a whole before any row is written."""

from __future__ import annotations

import json
from typing import Any

from django.utils.translation import gettext as _

from dialogs.errors import DialogError
from dialogs.models import Course, Generation
from dialogs.models.llm import WindowSource
from dialogs.models.message import MessageOrigin, Role
from dialogs.transfer.laws import check_whole
from dialogs.transfer.place import Place, flag, items, json_object, maybe, moment, one_of, record, text, whole
from dialogs.transfer.shape import (
    FORMAT,
    UNAVAILABLE,
    CourseEntry,
    DialogFile,
    GenerationEntry,
    MessageEntry,
    QueuedEntry,
    ReadingEntry,
    SentEntry,
    UsageEntry,
)
from health.models import HealthReading

MAX_BYTES = 100 * 1024 * 1024
MAX_ENTRIES = 50_000
long_text = text(20_000_000)
short_text = text(300)

COURSE = {"number": whole(1), "opened_by": one_of(Course.OpenedBy.values), "opened_at": moment}
MESSAGE = {
    "seq": whole(1),
    "parent": maybe(whole(1)),
    "course": whole(1),
    "turn": whole(),
    "role": one_of(Role.values),
    "origin": one_of(MessageOrigin.values),
    "content": long_text,
    "parts": json_object,
    "cut_short": flag,
    "created_at": moment,
}
USAGE = {
    "prompt_tokens": whole(),
    "completion_tokens": whole(),
    "total_tokens": whole(),
    "cached_tokens": maybe(whole()),
}
READING = {
    "level": one_of(HealthReading.Level.values),
    "reason": one_of(["", *HealthReading.Reason.values]),
    "context_window": maybe(whole(1)),
    "window_source": one_of(["", *WindowSource.values]),
    "optimal_max_tokens": maybe(whole(1)),
    "optimal_configured": flag,
    "critical_max_tokens": maybe(whole(1)),
    "critical_configured": flag,
    "read_at": moment,
}
QUEUED = {"content": long_text, "created_at": moment}


def _seqs(place: Place) -> tuple[int, ...]:
    return tuple(whole(1)(item) for item in items(place, most=MAX_ENTRIES))


SENT = {"messages": _seqs, "instructions": maybe(long_text), "options": json_object}


def _usage(place: Place) -> UsageEntry | str:
    return UNAVAILABLE if place.value == UNAVAILABLE else UsageEntry(**record(place, USAGE))


GENERATION = {
    "course": whole(1),
    "number": whole(1),
    "turn": whole(),
    "attempt": whole(1),
    "llm": short_text,
    "prompt_leaf": whole(1),
    "message": maybe(whole(1)),
    "status": one_of(Generation.Status.values),
    "sent": lambda place: SentEntry(**record(place, SENT)),
    "partial_text": long_text,
    "partial_reasoning": long_text,
    "usage": _usage,
    "usage_raw": maybe(json_object),
    "reading": maybe(lambda place: ReadingEntry(**record(place, READING))),
    "finish_reason": text(60),
    "error_code": text(60),
    "error_message": long_text,
    "started_at": moment,
    "first_token_at": maybe(moment),
    "finished_at": maybe(moment),
}


def _list_of(entry: type, table: dict[str, Any]) -> Any:
    return lambda place: tuple(entry(**record(item, table)) for item in items(place, most=MAX_ENTRIES))


DIALOG = {
    "format": one_of([FORMAT]),
    "exported_at": moment,
    "title": text(200),
    "titled_by_person": flag,
    "agent": short_text,
    "llm": short_text,
    "created_at": moment,
    "active_at": moment,
    "current_leaf": maybe(whole(1)),
    "courses": _list_of(CourseEntry, COURSE),
    "messages": _list_of(MessageEntry, MESSAGE),
    "generations": _list_of(GenerationEntry, GENERATION),
    "queued": _list_of(QueuedEntry, QUEUED),
}


def parse_json(raw: bytes) -> object:
    """JSON from an upload or a file. Raises DialogError with line and column."""
    if len(raw) > MAX_BYTES:
        raise DialogError(_("The file is larger than %(most)s MB.") % {"most": MAX_BYTES // 2**20})
    try:
        return json.loads(raw)
    except json.JSONDecodeError as error:
        place = {"line": error.lineno, "column": error.colno}
        raise DialogError(_("The file is not JSON: line %(line)s, column %(column)s.") % place) from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise DialogError(_("The file is not JSON in UTF-8.")) from error


def read_file(data: object) -> DialogFile:
    """The checked file. Raises DialogError that names the place."""
    file = DialogFile(**record(Place(data), DIALOG))
    check_whole(file)
    return file
