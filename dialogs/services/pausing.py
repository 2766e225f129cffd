"""Pause and go on: while a dialog is paused the driver answers messages, but does nothing of its own accord."""

from __future__ import annotations

from django.db import transaction

from dialogs.models import Dialog
from dialogs.models.dialog import PausedBy
from dialogs.models.message import Role
from dialogs.schedule import drive_on_commit
from dialogs.services.rows import count_anew, lock, save, want_answer, written_here


@transaction.atomic
def pause(*, dialog: Dialog) -> None:
    """Let the answer under way end, then rest until a person lets it go on."""
    row = written_here(lock(dialog))
    row.paused_by = PausedBy.PERSON
    save(row, "paused_by")


@transaction.atomic
def go_on(*, dialog: Dialog) -> None:
    """Take up what remediation or autonomous mode would do next, or the turn that was ended for its many rounds."""
    row = written_here(lock(dialog))
    was_working = row.paused_by == PausedBy.ROUNDS and row.current_leaf and row.current_leaf.role == Role.TOOL
    row.paused_by = PausedBy.NOBODY
    count_anew(row)
    if was_working and not row.is_busy:
        want_answer(row)
        return
    row.wake_seq += 1
    save(row, "paused_by", "wake_seq", "crashes", "counted_from")
    drive_on_commit(row.pk)
