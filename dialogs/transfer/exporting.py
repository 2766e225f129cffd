"""From the tables to a dialog file: messages and calls, generations, marks, compaction runs, and how the views of
courses moved. Reads only.
"""

from __future__ import annotations

from dataclasses import asdict, fields
from datetime import datetime
from typing import Any, TypeVar

from django.db import transaction
from django.db.models import Model
from django.utils import timezone

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
from dialogs.transcript.writes.dialog_row import lock
from dialogs.transcript.writes.trash import SENT_KEYS
from dialogs.transfer.shape import (
    FORMAT,
    UNAVAILABLE,
    CallEntry,
    CallPlace,
    CarriedEntry,
    ClientEntry,
    CourseEntry,
    DialogFile,
    GenerationEntry,
    MessageEntry,
    PromptEntry,
    QuestionEntry,
    QueuedEntry,
    ReadingEntry,
    ReminderEntry,
    RuleEntry,
    RunEntry,
    SentEntry,
    UsageEntry,
)
from dialogs.transfer.shape_views import (
    FACT_CHARS,
    TRAVELS,
    UNDER_WAY,
    CompactionEntry,
    EventEntry,
    LedgerEntry,
    LossEntry,
    MarkEntry,
    ReceiptEntry,
    SeenEntry,
    StepEntry,
    TaskEntry,
    TermEntry,
    ViewChangeEntry,
)
from health.compaction.snapshot import from_json
from health.compaction.terms.reasons import text_of
from health.models import CompactionRun, ContextEvent

Entry = TypeVar("Entry")
Seqs = dict[int, int]
Numbers = dict[int, int]
Part = TypeVar("Part")


def export_json(dialog: Dialog) -> dict[str, Any]:
    """Everything that the dialog holds, on all its branches, as JSON values."""
    with transaction.atomic():
        # The driver waits for this lock: rows that are read last must not refer to rows that came after the first.
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


def _file(dialog: Dialog) -> DialogFile:
    messages = list(Message.objects.filter(dialog=dialog).select_related("course"))
    seqs = {message.pk: message.seq for message in messages}
    generations = list(Generation.objects.filter(dialog=dialog).select_related("course", "reading"))
    texts = _texts(generations)
    index = {sha256: number for number, sha256 in enumerate(texts)}
    numbers = numbers_of(dialog)
    blobs = blobs_of(message.parts for message in messages)
    return entry_of(
        DialogFile,
        dialog,
        format=FORMAT,
        exported_at=timezone.now(),
        agent=dialog.agent.slug,
        llm=dialog.llm.slug,
        current_leaf=seqs[dialog.current_leaf_id] if dialog.current_leaf_id else None,
        courses=_courses(dialog, seqs, numbers),
        messages=tuple(_message(row, seqs, blobs) for row in messages),
        generations=tuple(_generation(row, seqs, index, numbers) for row in generations),
        queued=tuple(entry_of(QueuedEntry, row) for row in dialog.queued.all()),
        reminders=_reminders(dialog),
        standing_rules=tuple(RuleEntry(**asdict(rule)) for rule in standing_rules.load(dialog.standing_rules)),
        calls=_calls(dialog, seqs),
        prompts=_prompts(dialog, seqs),
        runs=tuple(entry_of(RunEntry, row) for row in dialog.autonomous_runs.all()),
        marks=marks(dialog, seqs),
        compactions=compactions(dialog, seqs, numbers),
        view_changes=view_changes(dialog, numbers),
        texts=tuple(texts.values()),
        client=_client(dialog),
        task=task(dialog),
        events=events(dialog, seqs, numbers),
    )


def _courses(dialog: Dialog, seqs: Seqs, numbers: Numbers) -> tuple[CourseEntry, ...]:
    questions = Question.objects.filter(dialog=dialog).select_related("tool_call")
    places = {
        row.pk: CallPlace(message=seqs[row.tool_call.message_id], position=row.tool_call.position) for row in questions
    }
    return tuple(
        entry_of(CourseEntry, row, carried=_carried(row, seqs, places), head=numbers.get(row.head_run_id or 0))
        for row in dialog.courses.all()
    )


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


def _message(row: Message, seqs: Seqs, blobs: dict[str, str]) -> MessageEntry:
    """A message with all that a client attached to it."""
    return entry_of(
        MessageEntry,
        row,
        parent=seqs[row.parent_id] if row.parent_id else None,
        course=row.course.number,
        parts=with_blobs(row.parts, blobs) if "wire" in row.parts else row.parts,
    )


def _client(dialog: Dialog) -> ClientEntry | None:
    row = ClientConversation.objects.filter(dialog=dialog).first()
    return entry_of(ClientEntry, row, tools=tuple(row.tools)) if row else None


def _reminders(dialog: Dialog) -> tuple[ReminderEntry, ...]:
    rows = dialog.reminders.select_related("course")
    return tuple(entry_of(ReminderEntry, row, course=row.course.number if row.course else None) for row in rows)


def _calls(dialog: Dialog, seqs: Seqs) -> tuple[CallEntry, ...]:
    rows = ToolCall.objects.filter(message__dialog=dialog).select_related("question")
    return tuple(
        entry_of(
            CallEntry,
            row,
            message=seqs[row.message_id],
            result_message=seqs[row.result_message_id] if row.result_message_id else None,
            question=entry_of(QuestionEntry, row.question) if hasattr(row, "question") else None,
        )
        for row in rows.order_by("message__seq", "position")
    )


def _prompts(dialog: Dialog, seqs: Seqs) -> tuple[PromptEntry, ...]:
    rows = RemediationPrompt.objects.filter(dialog=dialog)
    return tuple(entry_of(PromptEntry, row, message=seqs[row.message_id]) for row in rows)


def _texts(generations: list[Generation]) -> dict[str, str]:
    """The texts that were sent, by hash, in the order of their first use."""
    used = dict.fromkeys(row.manifest[key] for row in generations for key in SENT_KEYS if key in row.manifest)
    found = Blob.objects.in_bulk(list(used))
    return {sha256: found[sha256].content for sha256 in used if sha256 in found}


def _generation(row: Generation, seqs: Seqs, index: dict[str, int], numbers: Numbers) -> GenerationEntry:
    return entry_of(
        GenerationEntry,
        row,
        course=row.course.number,
        llm=row.llm_name,
        prompt_leaf=seqs[row.prompt_leaf_id],
        message=seqs[row.message_id] if row.message_id else None,
        sent=_sent(row.manifest, seqs, index, numbers),
        usage=_usage(row),
        reading=entry_of(ReadingEntry, row.reading) if hasattr(row, "reading") else None,
    )


def _sent(manifest: dict[str, Any], seqs: Seqs, index: dict[str, int], numbers: Numbers) -> SentEntry:
    return SentEntry(
        messages=tuple(seqs[message_id] for message_id in manifest.get("messages", ())),
        texts={key: index[manifest[key]] for key in SENT_KEYS if manifest.get(key) in index},
        options=manifest.get("options", {}),
        view=numbers.get(manifest.get("view", 0)),
        estimated=manifest.get("estimated"),
    )


def _usage(row: Generation) -> UsageEntry | str:
    if row.prompt_tokens is None or row.completion_tokens is None or row.total_tokens is None:
        return UNAVAILABLE
    return entry_of(UsageEntry, row)


# --- From the tables to a dialog file: the task's snapshot, and the events of its context. Reads only ---
def task(dialog: Dialog) -> TaskEntry | None:
    snapshot = from_json(dialog.task_snapshot)
    return TaskEntry(**asdict(snapshot)) if snapshot else None


def events(dialog: Dialog, seqs: Seqs, numbers: Numbers) -> tuple[EventEntry, ...]:
    rows = ContextEvent.objects.filter(dialog=dialog, code__in=TRAVELS).select_related("llm__provider").order_by("pk")
    courses = dict(Course.objects.filter(dialog=dialog).values_list("pk", "number"))
    return tuple(_event(row, seqs, courses, numbers) for row in rows)


def _event(row: ContextEvent, seqs: Seqs, courses: dict[int, int], numbers: Numbers) -> EventEntry:
    facts = row.facts
    return entry_of(
        EventEntry,
        row,
        run=numbers.get(row.run_id or 0),
        llm=row.llm.slug if row.llm else "",
        course=courses.get(facts.get("course", 0)),
        message=seqs.get(facts.get("message", 0)),
        turn=facts.get("turn"),
        compactions=facts.get("compactions"),
        **{name: str(facts.get(name, ""))[:FACT_CHARS] for name in ("trigger", "cause", "reason")},
    )


def entry_of(kind: type[Entry], row: Model, **given: Any) -> Entry:
    """An entry with what is given, and else with what the row holds under the same names."""
    names = {field.name for field in fields(kind)} - given.keys()  # type: ignore[arg-type]  # always a dataclass
    return kind(**{name: getattr(row, name) for name in names}, **given)


def numbers_of(dialog: Dialog) -> Numbers:
    """The runs that travel along, by id: 1 for the first."""
    over = CompactionRun.objects.filter(dialog=dialog).exclude(status__in=UNDER_WAY)
    return {pk: number for number, pk in enumerate(over.order_by("pk").values_list("pk", flat=True), start=1)}


def marks(dialog: Dialog, seqs: Seqs) -> tuple[MarkEntry, ...]:
    rows = MessageMark.objects.filter(message__dialog=dialog).order_by("message__seq")
    return tuple(entry_of(MarkEntry, row, message=seqs[row.message_id]) for row in rows)


def view_changes(dialog: Dialog, numbers: Numbers) -> tuple[ViewChangeEntry, ...]:
    rows = ViewChange.objects.filter(course__dialog=dialog).select_related("course").order_by("pk")
    return tuple(
        entry_of(
            ViewChangeEntry,
            row,
            course=row.course.number,
            before=numbers.get(row.before_id or 0),
            after=numbers.get(row.after_id or 0),
        )
        for row in rows
    )


def compactions(dialog: Dialog, seqs: Seqs, numbers: Numbers) -> tuple[CompactionEntry, ...]:
    rows = CompactionRun.objects.filter(pk__in=numbers).select_related("course").order_by("pk")
    return tuple(_compaction(row, seqs, numbers) for row in rows)


def _compaction(row: CompactionRun, seqs: Seqs, numbers: Numbers) -> CompactionEntry:
    return entry_of(
        CompactionEntry,
        row,
        number=numbers[row.pk],
        course=row.course.number,
        parent=numbers.get(row.parent_run_id or 0),
        leaf=seqs[row.leaf_id],
        chain=tuple(row.chain),
        limit_trace=_parts(TermEntry, row.limit_trace),
        # One that never ended says nothing of what it would have made.
        steps=_parts(StepEntry, (step for step in row.steps if not step.get("is_running"))),
        view=_view(row, seqs),
        removed=_seqs(row.removed, seqs),
        coverage=_parts(ReceiptEntry, (_about_message(receipt, seqs) for receipt in row.coverage)),
        losses=_parts(LossEntry, (_about_message(loss, seqs) for loss in row.losses)),
        ledger=_parts(LedgerEntry, row.ledger),
        warnings=tuple(map(text_of, row.warnings)),
    )


def _parts(kind: type[Part], rows: Any) -> tuple[Part, ...]:
    """Entries of stored JSON objects, which have the same names."""
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]  # always a dataclass
    return tuple(kind(**{name: row[name] for name in names}) for row in rows)


def _view(row: CompactionRun, seqs: Seqs) -> tuple[SeenEntry, ...]:
    return tuple(
        SeenEntry(
            message=seqs[entry.message_id] if entry.message_id else None,
            content=entry.content,
            kind=entry.kind,
            covers=_seqs(entry.covers, seqs),
        )
        for entry in load(row.view)
    )


def _seqs(ids: Any, seqs: Seqs) -> tuple[int, ...]:
    """A ledger of an imported dialog may still name ids of the dialog that it was made in: those say nothing here."""
    return tuple(sorted(seqs[message_id] for message_id in ids if message_id in seqs))


def _about_message(row: dict[str, Any], seqs: Seqs) -> dict[str, Any]:
    """The engine names units by text: a message's id, or "written-3" for what an earlier run wrote."""
    name = str(row["message"])
    return {**row, "message": seqs.get(int(name)) if name.isdigit() else None}
