"""Tasks to clean a context up: opened after three warnings in an hour, given to somebody, ticked off, closed."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from dialogs.models import Dialog
from dialogs.transcript.writes.dialog_row import save
from health.models import CleanupTask, ContextEvent

WARNINGS = 3
HOUR = timedelta(hours=1)
STEPS = ("pin", "archive", "limit", "course")


def open_if_frequent(row: Dialog) -> None:
    """One is open at a time; after one was closed, only later warnings count. Imported ones, of no agent, never do."""
    since = timezone.now() - HOUR
    closed = CleanupTask.objects.filter(dialog=row).aggregate(newest=Max("closed_at"))["newest"]
    warnings = ContextEvent.objects.filter(
        dialog=row,
        agent__isnull=False,
        code=ContextEvent.Code.WARNING,
        happened_at__gt=max(since, closed or since),
    )
    if warnings.count() >= WARNINGS:
        CleanupTask.objects.get_or_create(dialog=row, closed_at=None, defaults={"assignee_id": row.owner_id})


@transaction.atomic
def change_task(*, task: CleanupTask, assignee: User | None, done: Collection[str]) -> None:
    """Steps that nobody knows are left out."""
    task.assignee = assignee
    task.done = [step for step in STEPS if step in done]
    task.save(update_fields=["assignee", "done"])


@transaction.atomic
def close_task(*, task: CleanupTask, by: User) -> None:
    task.closed_at, task.closed_by = timezone.now(), by
    task.save(update_fields=["closed_at", "closed_by"])
    save(task.dialog)
