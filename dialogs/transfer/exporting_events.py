"""From the tables to a dialog file: the task's snapshot, and the events of its context. Reads only."""

from __future__ import annotations

from dataclasses import asdict

from dialogs.models import Course, Dialog
from dialogs.transfer.entries import Seqs, entry_of
from dialogs.transfer.exporting_views import Numbers
from dialogs.transfer.shape_events import FACT_CHARS, TRAVELS, EventEntry, TaskEntry
from health.compaction.snapshot import from_json
from health.models import ContextEvent


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
