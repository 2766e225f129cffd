"""From the tables to a dialog file: marks, compaction runs, and how the views of courses moved. Reads only."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

from dialogs.models import Dialog, MessageMark, ViewChange
from dialogs.transcript.model_view import load
from dialogs.transfer.entries import Seqs, entry_of
from dialogs.transfer.shape_views import (
    UNDER_WAY,
    CompactionEntry,
    LedgerEntry,
    LossEntry,
    MarkEntry,
    ReceiptEntry,
    SeenEntry,
    StepEntry,
    TermEntry,
    ViewChangeEntry,
)
from health.compaction.terms.reasons import text_of
from health.models import CompactionRun

Numbers = dict[int, int]
Part = TypeVar("Part")


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
