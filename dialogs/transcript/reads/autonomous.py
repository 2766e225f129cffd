"""Autonomous mode as a person sees it: the run under way, how the last one ended, and why the dialog rests."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet, UUIDField
from django.utils import timezone

from dialogs.models import AutonomousRun, Course, Dialog, Message, Question
from dialogs.models.dialog import PausedBy
from dialogs.models.message import MessageOrigin
from dominds.prepared import prepared


@dataclass(frozen=True, kw_only=True)
class RunStatus:
    run_id: int
    goal: str
    generations: int
    max_generations: int
    # The number of courses of the run, the first included.
    courses: int
    started_at: datetime
    # The duration of the run, so far or in all.
    elapsed_seconds: int
    # Empty while the run is active.
    ended_by: str
    summary: str
    # The agent has asked a person and does nothing until it is answered.
    waiting: bool

    @property
    def is_active(self) -> bool:
        return not self.ended_by


def active_run(dialog: Dialog) -> AutonomousRun | None:
    run = newest_run(dialog)
    return run if run and run.ended_at is None else None


def newest_run(dialog: Dialog) -> AutonomousRun | None:
    """The newest autonomous run, which is the one under way if any is: none begins beside another."""
    return _newest.first(dialog.pk)


@prepared(UUIDField())
def _newest(dialog_id: Any) -> QuerySet[AutonomousRun]:
    return AutonomousRun.objects.filter(dialog=dialog_id).order_by("-id")[:1]


def run_status(dialog: Dialog) -> RunStatus | None:
    """The active run; else the newest one, until the person types something after it."""
    run = newest_run(dialog)
    if run is None or _is_past(dialog, run):
        return None
    end = run.ended_at or timezone.now()
    return RunStatus(
        run_id=run.pk,
        goal=run.goal,
        generations=run.generations,
        max_generations=run.max_generations,
        courses=_courses(run, end),
        started_at=run.started_at,
        elapsed_seconds=max(0, int((end - run.started_at).total_seconds())),
        ended_by=run.ended_by,
        summary=run.summary,
        waiting=Question.objects.filter(dialog=dialog, status=Question.Status.PENDING).exists(),
    )


def rest_reason(dialog: Dialog) -> str:
    """Why the driver does not do what it would do next; empty where it has nothing to do."""
    if dialog.paused_by == PausedBy.ROUNDS:
        return dialog.paused_by
    if dialog.paused_by and (active_run(dialog) or _remediation_is_due(dialog)):
        return dialog.paused_by
    return ""


def _remediation_is_due(dialog: Dialog) -> bool:
    return Course.objects.filter(messages=dialog.current_leaf_id).exclude(due="").exists()


def _is_past(dialog: Dialog, run: AutonomousRun) -> bool:
    """Has the run ended, and did the person type a message after it?"""
    typed = Message.objects.filter(dialog=dialog, origin=MessageOrigin.TYPED)
    return run.ended_at is not None and typed.filter(created_at__gt=run.ended_at).exists()


def _courses(run: AutonomousRun, end: datetime) -> int:
    """Count the courses opened during the run: course numbers run across branches, and go on after a run."""
    opened = Course.objects.filter(dialog_id=run.dialog_id, opened_at__gt=run.started_at, opened_at__lte=end)
    return 1 + opened.count()
