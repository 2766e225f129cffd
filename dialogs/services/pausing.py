"""Pause and go on: while a dialog is paused the driver answers messages, but does nothing of its own accord."""

from __future__ import annotations

from django.db import transaction

from dialogs.models import Dialog
from dialogs.models.dialog import PausedBy
from dialogs.schedule import drive_on_commit
from dialogs.services.rows import count_anew, lock, save, written_here


@transaction.atomic
def pause(*, dialog: Dialog) -> None:
    """Let the answer under way end, then rest until a person lets it go on."""
    row = written_here(lock(dialog))
    row.paused_by = PausedBy.PERSON
    save(row, "paused_by")


@transaction.atomic
def go_on(*, dialog: Dialog) -> None:
    """Take up what remediation or autonomous mode would do next."""
    row = written_here(lock(dialog))
    row.paused_by = PausedBy.NOBODY
    row.wake_seq += 1
    count_anew(row)
    save(row, "paused_by", "wake_seq", "crashes", "counted_from")
    drive_on_commit(row.pk)
