"""From the tables to a dialog file. Reads only."""

from __future__ import annotations

from dataclasses import asdict, fields
from datetime import datetime
from typing import Any, TypeVar

from django.db import transaction
from django.db.models import Model
from django.utils import timezone

from dialogs.models import Blob, Course, Dialog, Generation, Message, Question, RemediationPrompt, ToolCall
from dialogs.services.rows import lock
from dialogs.services.trash import BLOB_KEYS
from dialogs.transfer.shape import (
    FORMAT,
    UNAVAILABLE,
    CallEntry,
    CallPlace,
    CarriedEntry,
    CourseEntry,
    DialogFile,
    GenerationEntry,
    MessageEntry,
    PromptEntry,
    QuestionEntry,
    QueuedEntry,
    ReadingEntry,
    ReminderEntry,
    RunEntry,
    SentEntry,
    UsageEntry,
)

Entry = TypeVar("Entry")
Seqs = dict[int, int]


def export_json(dialog: Dialog) -> dict[str, Any]:
    """Everything that the dialog holds, on all its branches, as JSON values."""
    with transaction.atomic():
        # Whoever drives it waits: what is read last must not refer to what came after the first.
        file = _file(lock(dialog))
    exported: dict[str, Any] = _as_json(asdict(file))
    return exported


def _as_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, dict):
        return {key: _as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    return value


def _entry(kind: type[Entry], row: Model, **given: Any) -> Entry:
    """An entry with what is given, and else with what the row holds under the same names."""
    names = {field.name for field in fields(kind)} - given.keys()  # type: ignore[arg-type]  # always a dataclass
    return kind(**{name: getattr(row, name) for name in names}, **given)


def _file(dialog: Dialog) -> DialogFile:
    messages = list(Message.objects.filter(dialog=dialog).select_related("course"))
    seqs = {message.pk: message.seq for message in messages}
    generations = list(Generation.objects.filter(dialog=dialog).select_related("course", "reading"))
    texts = _texts(generations)
    index = {sha256: number for number, sha256 in enumerate(texts)}
    return _entry(
        DialogFile,
        dialog,
        format=FORMAT,
        exported_at=timezone.now(),
        agent=dialog.agent.slug,
        llm=dialog.llm.slug,
        current_leaf=seqs[dialog.current_leaf_id] if dialog.current_leaf_id else None,
        courses=_courses(dialog, seqs),
        messages=tuple(_message(row, seqs) for row in messages),
        generations=tuple(_generation(row, seqs, index) for row in generations),
        queued=tuple(_entry(QueuedEntry, row) for row in dialog.queued.all()),
        reminders=_reminders(dialog),
        calls=_calls(dialog, seqs),
        prompts=_prompts(dialog, seqs),
        runs=tuple(_entry(RunEntry, row) for row in dialog.autonomous_runs.all()),
        texts=tuple(texts.values()),
    )


def _courses(dialog: Dialog, seqs: Seqs) -> tuple[CourseEntry, ...]:
    questions = Question.objects.filter(dialog=dialog).select_related("tool_call")
    places = {
        row.pk: CallPlace(message=seqs[row.tool_call.message_id], position=row.tool_call.position) for row in questions
    }
    return tuple(_entry(CourseEntry, row, carried=_carried(row, seqs, places)) for row in dialog.courses.all())


def _carried(row: Course, seqs: Seqs, questions: dict[int, CallPlace]) -> CarriedEntry | None:
    if not row.carried:
        return None
    request = row.carried.get("request")
    return CarriedEntry(
        reminders=tuple(row.carried.get("reminders", ())),
        taskdoc=row.carried.get("taskdoc", False),
        request=seqs[request] if request else None,
        questions=tuple(questions[question_id] for question_id in row.carried.get("questions", ())),
    )


def _message(row: Message, seqs: Seqs) -> MessageEntry:
    return _entry(MessageEntry, row, parent=seqs[row.parent_id] if row.parent_id else None, course=row.course.number)


def _reminders(dialog: Dialog) -> tuple[ReminderEntry, ...]:
    rows = dialog.reminders.select_related("course")
    return tuple(_entry(ReminderEntry, row, course=row.course.number if row.course else None) for row in rows)


def _calls(dialog: Dialog, seqs: Seqs) -> tuple[CallEntry, ...]:
    rows = ToolCall.objects.filter(message__dialog=dialog).select_related("question")
    return tuple(
        _entry(
            CallEntry,
            row,
            message=seqs[row.message_id],
            result_message=seqs[row.result_message_id] if row.result_message_id else None,
            question=_entry(QuestionEntry, row.question) if hasattr(row, "question") else None,
        )
        for row in rows.order_by("message__seq", "position")
    )


def _prompts(dialog: Dialog, seqs: Seqs) -> tuple[PromptEntry, ...]:
    rows = RemediationPrompt.objects.filter(dialog=dialog)
    return tuple(_entry(PromptEntry, row, message=seqs[row.message_id]) for row in rows)


def _texts(generations: list[Generation]) -> dict[str, str]:
    """The texts that were sent, by hash, in the order of their first use."""
    used = dict.fromkeys(row.manifest[key] for row in generations for key in BLOB_KEYS if key in row.manifest)
    found = Blob.objects.in_bulk(list(used))
    return {sha256: found[sha256].content for sha256 in used if sha256 in found}


def _generation(row: Generation, seqs: Seqs, index: dict[str, int]) -> GenerationEntry:
    return _entry(
        GenerationEntry,
        row,
        course=row.course.number,
        llm=row.llm_name,
        prompt_leaf=seqs[row.prompt_leaf_id],
        message=seqs[row.message_id] if row.message_id else None,
        sent=_sent(row.manifest, seqs, index),
        usage=_usage(row),
        reading=_entry(ReadingEntry, row.reading) if hasattr(row, "reading") else None,
    )


def _sent(manifest: dict[str, Any], seqs: Seqs, index: dict[str, int]) -> SentEntry:
    return SentEntry(
        messages=tuple(seqs[message_id] for message_id in manifest.get("messages", ())),
        texts={key: index[manifest[key]] for key in BLOB_KEYS if manifest.get(key) in index},
        options=manifest.get("options", {}),
    )


def _usage(row: Generation) -> UsageEntry | str:
    if row.prompt_tokens is None or row.completion_tokens is None or row.total_tokens is None:
        return UNAVAILABLE
    return _entry(UsageEntry, row)
