"""Autonomous mode as a person sees it: the run under way, how the last one ended, and why the dialog rests."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from dialogs.models import AutonomousRun, Course, Dialog, Message, Question
from dialogs.models.dialog import PausedBy
from dialogs.models.message import MessageOrigin


@dataclass(frozen=True, kw_only=True)
class RunStatus:
    run_id: int
    goal: str
    generations: int
    max_generations: int
    # How many courses it has been through, the one in which it began included.
    courses: int
    started_at: datetime
    # How long it took, or has taken so far.
    elapsed_seconds: int
    # Empty while it is under way.
    ended_by: str
    summary: str
    # The agent has asked a person and does nothing until it is answered.
    waiting: bool

    @property
    def is_active(self) -> bool:
        return not self.ended_by


def active_run(dialog: Dialog) -> AutonomousRun | None:
    return AutonomousRun.objects.filter(dialog=dialog, ended_at=None).first()


def run_status(dialog: Dialog) -> RunStatus | None:
    """The active run; else the newest one, until the person types something after it."""
    run = active_run(dialog) or _newly_ended(dialog)
    if run is None:
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
    """Why the driver holds back what it would do next; nothing where it has nothing to do anyway."""
    if dialog.paused_by == PausedBy.ROUNDS:
        return dialog.paused_by
    if dialog.paused_by and (active_run(dialog) or _remediation_is_due(dialog)):
        return dialog.paused_by
    return ""


def _remediation_is_due(dialog: Dialog) -> bool:
    return Course.objects.filter(messages=dialog.current_leaf_id).exclude(due="").exists()


def _newly_ended(dialog: Dialog) -> AutonomousRun | None:
    run = AutonomousRun.objects.filter(dialog=dialog).last()
    typed = Message.objects.filter(dialog=dialog, origin=MessageOrigin.TYPED)
    return None if run is None or typed.filter(created_at__gt=run.ended_at).exists() else run


def _courses(run: AutonomousRun, end: datetime) -> int:
    """Numbers are the dialog's, across its branches, and courses go on after a run: so count what it opened."""
    opened = Course.objects.filter(dialog_id=run.dialog_id, opened_at__gt=run.started_at, opened_at__lte=end)
    return 1 + opened.count()
