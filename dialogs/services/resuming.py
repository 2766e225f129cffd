"""What goes on by itself after a compaction: the answer that was given up, where a person reported that; and an agent
that rested because it went round in circles, after a fresh start."""

from __future__ import annotations

from dialogs.models import Dialog, Message
from dialogs.models.dialog import PausedBy
from dialogs.schedule import drive_on_commit
from dialogs.services.rows import save, want_answer
from health.models import CompactionRun, ContextEvent


def resume_after(row: Dialog, run: CompactionRun) -> None:
    """After a fresh start that holds; after a report however the run ended, unless it was cancelled or the person has
    gone on meanwhile."""
    if run.began_afresh:
        _out_of_a_circle(row)
    _change_llm(row, run)
    if run.trigger != CompactionRun.Trigger.MANUAL or run.status == CompactionRun.Status.CANCELLED:
        return
    report = ContextEvent.objects.filter(run=run, code=ContextEvent.Code.REPORTED).first()
    if report is None or row.is_busy or row.trashed_at or row.current_leaf_id != run.leaf_id:
        return
    row.current_leaf = Message.objects.get(dialog=row, pk=report.facts["message"])
    row.paused_by = PausedBy.NOBODY
    want_answer(row)


def _change_llm(row: Dialog, run: CompactionRun) -> None:
    """To the smaller LLM that the compaction was made for. Where nothing came of it, the present one stays."""
    if row.llm_after is None or run.trigger != CompactionRun.Trigger.MANUAL:
        return
    if run.status == CompactionRun.Status.APPLIED:
        row.llm = row.llm_after
    row.llm_after = None
    save(row, "llm", "llm_after")


def _out_of_a_circle(row: Dialog) -> None:
    if row.paused_by != PausedBy.LOOP:
        return
    row.paused_by = PausedBy.NOBODY
    row.wake_seq += 1
    save(row, "paused_by", "wake_seq")
    drive_on_commit(row.pk)
