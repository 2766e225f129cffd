"""What goes on by itself after a compaction: the answer that was given up, where a person reported that."""

from __future__ import annotations

from dialogs.models import Dialog, Message
from dialogs.models.dialog import PausedBy
from dialogs.services.rows import want_answer
from health.models import CompactionRun, ContextEvent


def resume_after(row: Dialog, run: CompactionRun) -> None:
    """However the run ended, unless it was cancelled or the person has gone on meanwhile."""
    if run.trigger != CompactionRun.Trigger.MANUAL or run.status == CompactionRun.Status.CANCELLED:
        return
    report = ContextEvent.objects.filter(run=run, code=ContextEvent.Code.REPORTED).first()
    if report is None or row.is_busy or row.trashed_at or row.current_leaf_id != run.leaf_id:
        return
    row.current_leaf = Message.objects.get(dialog=row, pk=report.facts["message"])
    row.paused_by = PausedBy.NOBODY
    want_answer(row)
