"""From the tables to a dialog file. Reads only."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.utils import timezone

from dialogs.models import Blob, Dialog, Generation, Message
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


def export_json(dialog: Dialog) -> dict[str, Any]:
    """Everything that the dialog holds, on all its branches, as JSON values."""
    exported: dict[str, Any] = _as_json(asdict(_file(dialog)))
    return exported


def _as_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, dict):
        return {key: _as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    return value


def _file(dialog: Dialog) -> DialogFile:
    messages = list(Message.objects.filter(dialog=dialog).select_related("course"))
    seqs = {message.pk: message.seq for message in messages}
    return DialogFile(
        format=FORMAT,
        exported_at=timezone.now(),
        title=dialog.title,
        titled_by_person=dialog.titled_by_person,
        agent=dialog.agent.slug,
        llm=dialog.llm.slug,
        created_at=dialog.created_at,
        active_at=dialog.active_at,
        current_leaf=seqs[dialog.current_leaf_id] if dialog.current_leaf_id else None,
        courses=tuple(
            CourseEntry(number=row.number, opened_by=row.opened_by, opened_at=row.opened_at)
            for row in dialog.courses.all()
        ),
        messages=tuple(_message(row, seqs) for row in messages),
        generations=_generations(dialog, seqs),
        queued=tuple(QueuedEntry(content=row.content, created_at=row.created_at) for row in dialog.queued.all()),
    )


def _message(row: Message, seqs: dict[int, int]) -> MessageEntry:
    return MessageEntry(
        seq=row.seq,
        parent=seqs[row.parent_id] if row.parent_id else None,
        course=row.course.number,
        turn=row.turn,
        role=row.role,
        origin=row.origin,
        content=row.content,
        parts=row.parts,
        cut_short=row.cut_short,
        created_at=row.created_at,
    )


def _generations(dialog: Dialog, seqs: dict[int, int]) -> tuple[GenerationEntry, ...]:
    rows = list(Generation.objects.filter(dialog=dialog).select_related("course", "reading"))
    hashes = {row.manifest.get("instructions") for row in rows}
    texts = dict(Blob.objects.filter(pk__in=hashes).values_list("sha256", "content"))
    return tuple(_generation(row, seqs, texts) for row in rows)


def _generation(row: Generation, seqs: dict[int, int], texts: dict[str, str]) -> GenerationEntry:
    return GenerationEntry(
        course=row.course.number,
        number=row.number,
        turn=row.turn,
        attempt=row.attempt,
        llm=row.llm_name,
        prompt_leaf=seqs[row.prompt_leaf_id],
        message=seqs[row.message_id] if row.message_id else None,
        status=row.status,
        sent=_sent(row.manifest, seqs, texts),
        partial_text=row.partial_text,
        partial_reasoning=row.partial_reasoning,
        usage=_usage(row),
        usage_raw=row.usage_raw,
        reading=_reading(row.reading) if hasattr(row, "reading") else None,
        finish_reason=row.finish_reason,
        error_code=row.error_code,
        error_message=row.error_message,
        started_at=row.started_at,
        first_token_at=row.first_token_at,
        finished_at=row.finished_at,
    )


def _sent(manifest: dict[str, Any], seqs: dict[int, int], texts: dict[str, str]) -> SentEntry:
    return SentEntry(
        messages=tuple(seqs[message_id] for message_id in manifest.get("messages", ())),
        instructions=texts.get(manifest.get("instructions", "")),
        options=manifest.get("options", {}),
    )


def _usage(row: Generation) -> UsageEntry | str:
    if row.prompt_tokens is None or row.completion_tokens is None or row.total_tokens is None:
        return UNAVAILABLE
    return UsageEntry(
        prompt_tokens=row.prompt_tokens,
        completion_tokens=row.completion_tokens,
        total_tokens=row.total_tokens,
        cached_tokens=row.cached_tokens,
    )


def _reading(row: HealthReading) -> ReadingEntry:
    return ReadingEntry(
        level=row.level,
        reason=row.reason,
        context_window=row.context_window,
        window_source=row.window_source,
        optimal_max_tokens=row.optimal_max_tokens,
        optimal_configured=row.optimal_configured,
        critical_max_tokens=row.critical_max_tokens,
        critical_configured=row.critical_configured,
        read_at=row.read_at,
    )
