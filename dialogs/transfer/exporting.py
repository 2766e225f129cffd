"""From the tables to a dialog file, with all branches. Reads only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any, TypeVar

from django.db import transaction
from django.db.models import Model
from django.utils import timezone

from dialogs.common.file_fields import Record
from dialogs.models import (
    Blob,
    ClientConversation,
    Course,
    Dialog,
    Generation,
    Message,
    MessageMark,
    Question,
    RemediationPrompt,
    ToolCall,
    ViewChange,
)
from dialogs.transcript import standing_rules
from dialogs.transcript.attachments import blobs_of, with_blobs
from dialogs.transcript.model_view import load
from dialogs.transcript.writes.dialog_row import SENT_KEYS, lock
from dialogs.transfer import shape, shape_views
from dialogs.transfer.references import references_in
from health.compaction.snapshot import from_json
from health.compaction.terms.reasons import text_of
from health.models import CompactionRun, ContextEvent

AnyRecord = TypeVar("AnyRecord", bound=Record)
# For each list of the file: a row's id, and its number in the file.
Numbers = dict[str, dict[int, int]]


def export_json(dialog: Dialog) -> dict[str, Any]:
    """The whole dialog, with all branches, as JSON values."""
    with transaction.atomic():
        # Locked against the driver, so that rows read later refer to no rows that were added since the first read.
        file = _file(lock(dialog))
    exported: dict[str, Any] = _as_json(file)
    return exported


def _as_json(value: Any) -> Any:
    if isinstance(value, Record):
        return _as_json(vars(value))
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, dict):
        return {key: _as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    return value


def _entry(kind: type[AnyRecord], row: Model, numbers: Numbers, **given: Any) -> AnyRecord:
    """An entry with the given values; the other fields are the row's columns of the same name, references as
    numbers."""
    names = {field.name for field in fields(kind)} - given.keys()
    named = {name: entries for name, entries in references_in(kind).items() if name in names}
    held = {name: getattr(row, name) for name in names - named.keys()}
    return kind(**held, **{name: numbers[named[name]].get(getattr(row, f"{name}_id")) for name in named}, **given)


def _entries(kind: type[AnyRecord], rows: Iterable[Model], numbers: Numbers) -> tuple[AnyRecord, ...]:
    return tuple(_entry(kind, row, numbers) for row in rows)


def _file(dialog: Dialog) -> shape.DialogFile:
    numbers = _numbers(dialog)
    generations = list(Generation.objects.filter(dialog=dialog).select_related("reading"))
    texts = _texts(generations)
    index = {sha256: number for number, sha256 in enumerate(texts)}
    marks = MessageMark.objects.filter(message__dialog=dialog)
    changes = ViewChange.objects.filter(course__dialog=dialog)
    return _entry(
        shape.DialogFile,
        dialog,
        numbers,
        format=shape.FORMAT,
        exported_at=timezone.now(),
        agent=dialog.agent.slug,
        llm=dialog.llm.slug,
        courses=_courses(dialog, numbers),
        messages=_messages(dialog, numbers),
        generations=tuple(_generation(row, index, numbers) for row in generations),
        queued=_entries(shape.QueuedEntry, dialog.queued.all(), numbers),
        reminders=_entries(shape.ReminderEntry, dialog.reminders.all(), numbers),
        standing_rules=tuple(shape.RuleEntry(**asdict(rule)) for rule in standing_rules.load(dialog.standing_rules)),
        calls=_calls(dialog, numbers),
        prompts=_entries(shape.PromptEntry, RemediationPrompt.objects.filter(dialog=dialog), numbers),
        runs=tuple(
            _entry(shape.RunEntry, row, numbers, first_course=row.first_course) for row in dialog.autonomous_runs.all()
        ),
        marks=_entries(shape_views.MarkEntry, marks.order_by("message__seq"), numbers),
        compactions=_compactions(numbers),
        view_changes=_entries(shape_views.ViewChangeEntry, changes.order_by("pk"), numbers),
        texts=tuple(texts.values()),
        client=_client(dialog),
        task=_task(dialog),
        events=_events(dialog, numbers),
    )


def _numbers(dialog: Dialog) -> Numbers:
    """Exported compaction runs are numbered from 1; courses and messages have numbers already."""
    over = CompactionRun.objects.filter(dialog=dialog).exclude(status__in=shape_views.UNDER_WAY).order_by("pk")
    return {
        "courses": dict(Course.objects.filter(dialog=dialog).values_list("pk", "number")),
        "messages": dict(Message.objects.filter(dialog=dialog).values_list("pk", "seq")),
        "compactions": {pk: number for number, pk in enumerate(over.values_list("pk", flat=True), start=1)},
    }


def _courses(dialog: Dialog, numbers: Numbers) -> tuple[shape.CourseEntry, ...]:
    questions = Question.objects.filter(dialog=dialog).select_related("tool_call")
    places = {row.pk: _entry(shape.CallPlace, row.tool_call, numbers) for row in questions}
    heads = numbers["compactions"]
    return tuple(
        _entry(
            shape.CourseEntry,
            row,
            numbers,
            carried=_carried(row.carried, numbers, places),
            head=heads.get(row.head_run_id or 0),
        )
        for row in dialog.courses.all()
    )


def _carried(
    carried: dict[str, Any], numbers: Numbers, questions: dict[int, shape.CallPlace]
) -> shape.CarriedEntry | None:
    if not carried:
        return None
    request = carried.get("request")
    return shape.CarriedEntry(
        reminders=tuple(carried.get("reminders", ())),
        taskdoc=carried.get("taskdoc", False),
        request=numbers["messages"][request] if request else None,
        questions=tuple(questions[question_id] for question_id in carried.get("questions", ())),
    )


def _messages(dialog: Dialog, numbers: Numbers) -> tuple[shape.MessageEntry, ...]:
    """Each message with its client's attachments."""
    rows = list(Message.objects.filter(dialog=dialog))
    blobs = blobs_of(row.parts for row in rows)
    return tuple(
        _entry(
            shape.MessageEntry, row, numbers, parts=with_blobs(row.parts, blobs) if "wire" in row.parts else row.parts
        )
        for row in rows
    )


def _client(dialog: Dialog) -> shape.ClientEntry | None:
    row = ClientConversation.objects.filter(dialog=dialog).first()
    return _entry(shape.ClientEntry, row, {}) if row else None


def _calls(dialog: Dialog, numbers: Numbers) -> tuple[shape.CallEntry, ...]:
    rows = ToolCall.objects.filter(message__dialog=dialog).select_related("question")
    return tuple(
        _entry(shape.CallEntry, row, numbers, question=_optional_entry(shape.QuestionEntry, row, "question"))
        for row in rows.order_by("message__seq", "position")
    )


def _optional_entry(kind: type[AnyRecord], row: Model, name: str) -> AnyRecord | None:
    """The entry of the related one-to-one row, if there is one."""
    return _entry(kind, getattr(row, name), {}) if hasattr(row, name) else None


def _texts(generations: list[Generation]) -> dict[str, str]:
    """The texts that were sent beside messages, by hash, in the order of first use."""
    used = dict.fromkeys(row.manifest[key] for row in generations for key in SENT_KEYS if key in row.manifest)
    found = Blob.objects.in_bulk(list(used))
    return {sha256: found[sha256].content for sha256 in used if sha256 in found}


def _generation(row: Generation, index: dict[str, int], numbers: Numbers) -> shape.GenerationEntry:
    return _entry(
        shape.GenerationEntry,
        row,
        numbers,
        llm=row.llm_name,
        sent=_sent(row.manifest, index, numbers),
        usage=_usage(row),
        reading=_optional_entry(shape.ReadingEntry, row, "reading"),
    )


def _sent(manifest: dict[str, Any], index: dict[str, int], numbers: Numbers) -> shape.SentEntry:
    return shape.SentEntry(
        messages=tuple(numbers["messages"][message_id] for message_id in manifest.get("messages", ())),
        texts={key: index[manifest[key]] for key in SENT_KEYS if manifest.get(key) in index},
        options=manifest.get("options", {}),
        view=numbers["compactions"].get(manifest.get("view", 0)),
        estimated=manifest.get("estimated"),
    )


def _usage(row: Generation) -> shape.Usage:
    if row.prompt_tokens is None or row.completion_tokens is None or row.total_tokens is None:
        return shape.UNAVAILABLE
    return _entry(shape.UsageEntry, row, {})


def _compactions(numbers: Numbers) -> tuple[shape_views.CompactionEntry, ...]:
    rows = CompactionRun.objects.filter(pk__in=numbers["compactions"]).order_by("pk")
    return tuple(_compaction(row, numbers) for row in rows)


def _compaction(row: CompactionRun, numbers: Numbers) -> shape_views.CompactionEntry:
    seqs = numbers["messages"]
    return _entry(
        shape_views.CompactionEntry,
        row,
        numbers,
        number=numbers["compactions"][row.pk],
        parent=numbers["compactions"].get(row.parent_run_id or 0),
        limit_trace=_stored(shape_views.TermEntry, row.limit_trace),
        # A step that never ended has no result.
        steps=_stored(shape_views.StepEntry, (step for step in row.steps if not step.get("is_running"))),
        view=_view(row, seqs),
        removed=_seqs(row.removed, seqs),
        coverage=_stored(shape_views.ReceiptEntry, (_about_message(receipt, seqs) for receipt in row.coverage)),
        losses=_stored(shape_views.LossEntry, (_about_message(loss, seqs) for loss in row.losses)),
        ledger=_stored(shape_views.LedgerEntry, row.ledger),
        warnings=tuple(map(text_of, row.warnings)),
    )


def _stored(kind: type[AnyRecord], rows: Iterable[dict[str, Any]]) -> tuple[AnyRecord, ...]:
    """Entries of stored JSON objects with the same field names."""
    names = [field.name for field in fields(kind)]
    return tuple(kind(**{name: row[name] for name in names}) for row in rows)


def _view(row: CompactionRun, seqs: dict[int, int]) -> tuple[shape_views.ViewEntry, ...]:
    return tuple(
        shape_views.ViewEntry(
            message=seqs[entry.message_id] if entry.message_id else None,
            content=entry.content,
            kind=entry.kind,
            covers=_seqs(entry.covers, seqs),
        )
        for entry in load(row.view)
    )


def _seqs(ids: Any, seqs: dict[int, int]) -> tuple[int, ...]:
    """An imported dialog's runs may still hold message ids of another installation; these are left out."""
    return tuple(sorted(seqs[message_id] for message_id in ids if message_id in seqs))


def _about_message(row: dict[str, Any], seqs: dict[int, int]) -> dict[str, Any]:
    """Unit ids of the engine are texts: a message's id, or such as "written-3" for a text of an earlier run."""
    name = str(row["message"])
    return {**row, "message": seqs.get(int(name)) if name.isdigit() else None}


def _task(dialog: Dialog) -> shape_views.TaskEntry | None:
    snapshot = from_json(dialog.task_snapshot)
    return shape_views.TaskEntry(**asdict(snapshot)) if snapshot else None


def _events(dialog: Dialog, numbers: Numbers) -> tuple[shape_views.EventEntry, ...]:
    rows = ContextEvent.objects.filter(dialog=dialog, code__in=shape_views.EXPORTED_CODES)
    return tuple(_event(row, numbers) for row in rows.select_related("llm__provider").order_by("pk"))


def _event(row: ContextEvent, numbers: Numbers) -> shape_views.EventEntry:
    facts = row.facts
    return _entry(
        shape_views.EventEntry,
        row,
        numbers,
        llm=row.llm.slug if row.llm else "",
        course=numbers["courses"].get(facts.get("course", 0)),
        message=numbers["messages"].get(facts.get("message", 0)),
        turn=facts.get("turn"),
        compactions=facts.get("compactions"),
        **{name: str(facts.get(name, ""))[: shape_views.FACT_CHARS] for name in ("trigger", "cause", "reason")},
    )
