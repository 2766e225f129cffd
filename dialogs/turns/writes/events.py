"""Records context events as they happen. Three warnings in an hour open a cleanup task."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _

from dialogs.common.errors import DialogError
from dialogs.models import Dialog
from dialogs.transcript.writes.dialog_row import lock, save
from health.models import CleanupTask, CompactionRun, ContextEvent

Code = ContextEvent.Code
WARNINGS = 3
HOUR = timedelta(hours=1)
STEPS = ("pin", "archive", "limit", "course")


def log(
    code: str,
    dialog: Dialog,
    *,
    run: CompactionRun | None = None,
    estimated: int | None = None,
    limit: int | None = None,
    **facts: Any,
) -> ContextEvent:
    """Record an event with the dialog's current agent and LLM, which may change later.

    `estimated` and `limit` are tokens as counted now; `facts` are other numbers and names, no text of a dialog.
    """
    return ContextEvent.objects.create(
        code=code,
        dialog_id=dialog.pk,
        owner_id=dialog.owner_id,
        agent_id=dialog.agent_id,
        llm_id=dialog.llm_id,
        run=run,
        estimated=estimated,
        limit=limit,
        facts=facts,
    )


def open_if_frequent(row: Dialog) -> None:
    """Open a cleanup task after three warnings. One task is open at a time; after one was closed, only later warnings
    count. Imported warnings, which have no agent, never count."""
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
def change_task(
    *, task: CleanupTask, by: User, shown: int | None, assignee: User | None, done: Collection[str] | None, closes: bool
) -> None:
    """`shown` is the assignee in the submitted form: if it is unchanged, another person's later change stays.

    Unknown steps are ignored; without `done` the steps stay. Raises DialogError after a conflicting change.
    """
    row = lock(task.dialog)
    task.refresh_from_db(fields=["assignee", "done", "closed_at"])
    wanted = assignee.pk if assignee else None
    if task.closed_at:
        raise DialogError(_("Somebody has closed this task meanwhile."))
    if wanted != shown and task.assignee_id not in (shown, wanted):
        raise DialogError(_("Somebody has changed meanwhile who does this. Look at it again."))
    task.assignee_id = task.assignee_id if wanted == shown else wanted
    task.done = task.done if done is None else [step for step in STEPS if step in done]
    if closes:
        task.closed_at, task.closed_by = timezone.now(), by
        save(row)
    task.save()
