"""Autonomous mode: begins and ends runs, and counts their generations. While one is active the driver sends pushes.

The two functions for a person take the dialog; the driver's take its locked row, so that counting is safe.
"""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from dialogs.common.errors import DialogError
from dialogs.common.schedule import drive_on_commit
from dialogs.common.text import storable
from dialogs.models import AutonomousRun, Dialog
from dialogs.models.dialog import PausedBy
from dialogs.transcript.reads.autonomous import active_run
from dialogs.transcript.writes import task_snapshot
from dialogs.transcript.writes.dialog_row import current_course, lock, out_of_trash, save, written_here
from dialogs.turns.writes.messages import request_stop, title_from

GOAL_CHARS = 20_000
MAX_GENERATIONS = 10_000
EndedBy = AutonomousRun.EndedBy


@transaction.atomic
def start_run(*, dialog: Dialog, goal: str, max_generations: int) -> AutonomousRun:
    """Start a run towards a goal. The driver is woken and begins with a push."""
    goal = _clean_goal(goal)
    if not 1 <= max_generations <= MAX_GENERATIONS:
        raise DialogError(_("Allow between 1 and %(most)s generations.") % {"most": f"{MAX_GENERATIONS:,}"})
    row = out_of_trash(written_here(lock(dialog)))
    if active_run(row):
        raise DialogError(_("The agent keeps going on its own already. End that first."))
    run = AutonomousRun.objects.create(
        dialog=row, goal=goal, max_generations=max_generations, first_course=current_course(row).number
    )
    task_snapshot.begin(row, goal)
    if not row.titled_by_person and row.current_leaf_id is None:
        row.title = title_from(goal)
    row.paused_by, row.archived_at = PausedBy.NOBODY, None
    row.wake_seq += 1
    row.active_at = timezone.now()
    save(row, "wake_seq", "paused_by", "title", "archived_at", "active_at")
    drive_on_commit(row.pk)
    return run


def _clean_goal(goal: str) -> str:
    text = storable(goal).replace("\r\n", "\n").replace("\r", "\n").strip()
    if not text:
        raise DialogError(_("Write down the goal first."))
    if len(text) > GOAL_CHARS:
        raise DialogError(_("The goal is longer than %(most)s characters.") % {"most": f"{GOAL_CHARS:,}"})
    return text


@transaction.atomic
def end_run(*, dialog: Dialog) -> None:
    """End the run for a person, and with it the answer under way. Does nothing if none is active."""
    row = lock(dialog)
    if _end(row, EndedBy.PERSON):
        request_stop(dialog=row)


def count_generation(row: Dialog) -> None:
    """Count a generation of the active run; called as the generation is recorded, before the row is saved."""
    run = active_run(row)
    if run is not None:
        run.generations += 1
        run.save(update_fields=["generations"])


def reach_limit(row: Dialog) -> bool:
    """End the active run if it has used all its generations. True if so."""
    run = active_run(row)
    return run is not None and run.generations >= run.max_generations and _end(row, EndedBy.LIMIT)


def finish_run(row: Dialog, *, summary: str) -> bool:
    """End the active run, as the agent says that the goal is reached. False if none was active."""
    ended = _end(row, EndedBy.DONE, summary=storable(summary))
    if ended:
        task_snapshot.complete(row, summary=storable(summary))
    return ended


def go_on(row: Dialog, *, since: datetime) -> None:
    """Reactivate the run if it was ended since then, by an answer that does not count."""
    ended = AutonomousRun.objects.filter(dialog=row, ended_by=EndedBy.DONE, ended_at__gte=since)
    if ended.update(ended_by="", ended_at=None, summary=""):
        task_snapshot.reopen(row)


def _end(row: Dialog, ended_by: AutonomousRun.EndedBy, *, summary: str = "") -> bool:
    run = active_run(row)
    if run is None:
        return False
    run.ended_by, run.ended_at, run.summary = ended_by, timezone.now(), summary
    run.save(update_fields=["ended_by", "ended_at", "summary"])
    save(row)
    return True
