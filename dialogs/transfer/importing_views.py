"""Marks, compaction runs and the moves of views, written from a checked dialog file. Whoever did it is not known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from dialogs.models import Course, Message, MessageMark, ViewChange
from dialogs.transcript.model_view import Entry, dump
from dialogs.transfer.adding import BATCH, add
from dialogs.transfer.shape import CourseEntry
from dialogs.transfer.shape_views import CompactionEntry, LossEntry, MarkEntry, ReceiptEntry, SeenEntry, ViewChangeEntry
from health.models import CompactionRun

Messages = dict[int, Message]
Courses = dict[int, Course]
# By number.
Runs = dict[int, CompactionRun]


def add_marks(entries: tuple[MarkEntry, ...], messages: Messages) -> None:
    rows = [MessageMark(**asdict(entry) | {"message": messages[entry.message]}) for entry in entries]
    add(MessageMark, rows, entries, "marked_at")


def add_compactions(entries: tuple[CompactionEntry, ...], courses: Courses, messages: Messages) -> Runs:
    rows = add(CompactionRun, [_run(entry, courses, messages) for entry in entries], entries, "queued_at")
    runs = {entry.number: row for entry, row in zip(entries, rows, strict=True)}
    for entry in entries:
        runs[entry.number].parent_run = runs[entry.parent] if entry.parent is not None else None
    CompactionRun.objects.bulk_update(rows, ["parent_run"], batch_size=BATCH)
    return runs


def _run(entry: CompactionEntry, courses: Courses, messages: Messages) -> CompactionRun:
    leaf, fields = messages[entry.leaf], asdict(entry)
    for name in ("number", "parent"):
        fields.pop(name)
    changed: dict[str, Any] = {
        "course": courses[entry.course],
        "leaf": leaf,
        "through_seq": leaf.seq,
        "view": dump(_seen(one, messages) for one in entry.view),
        "removed": _ids(entry.removed, messages),
        "coverage": [_about_message(one, messages) for one in entry.coverage],
        "losses": [_about_message(one, messages) for one in entry.losses],
    }
    return CompactionRun(dialog=leaf.dialog, **fields | changed)


def _seen(entry: SeenEntry, messages: Messages) -> Entry:
    return Entry(
        message_id=messages[entry.message].pk if entry.message is not None else None,
        content=entry.content,
        kind=entry.kind,
        covers=tuple(_ids(entry.covers, messages)),
    )


def _ids(seqs: Iterable[int], messages: Messages) -> list[int]:
    return [messages[seq].pk for seq in seqs]


def _about_message(entry: ReceiptEntry | LossEntry, messages: Messages) -> dict[str, Any]:
    """The engine names units by text; nothing is known of what an earlier run wrote."""
    return asdict(entry) | {"message": str(messages[entry.message].pk) if entry.message is not None else ""}


def set_heads(entries: tuple[CourseEntry, ...], courses: Courses, runs: Runs) -> None:
    heads = {entry.number: runs[entry.head] for entry in entries if entry.head is not None}
    for number, run in heads.items():
        courses[number].head_run = run
    Course.objects.bulk_update([courses[number] for number in heads], ["head_run"], batch_size=BATCH)


def add_view_changes(entries: tuple[ViewChangeEntry, ...], courses: Courses, runs: Runs) -> None:
    rows = [
        ViewChange(
            course=courses[entry.course],
            before=runs[entry.before] if entry.before is not None else None,
            after=runs[entry.after] if entry.after is not None else None,
            why=entry.why,
        )
        for entry in entries
    ]
    add(ViewChange, rows, entries, "changed_at")
