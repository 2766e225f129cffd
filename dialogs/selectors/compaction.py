"""What is known of a dialog's compactions: the run that is under way, the last one, how many this turn had."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from dialogs.driver.decide import MOST_COMPACTIONS
from dialogs.models import Generation, Message
from dialogs.models.message import MessageOrigin
from health.models import CompactionRun

Status = CompactionRun.Status
Trigger = CompactionRun.Trigger
OPEN = (Status.QUEUED, Status.RUNNING)
BY_THE_GUARD = (Trigger.PRE_REQUEST, Trigger.TOOL_RESULT, Trigger.STREAM)
BY_ITSELF = (*BY_THE_GUARD, Trigger.OVERFLOW)


def open_run(dialog_id: UUID) -> CompactionRun | None:
    """The run that is under way: queued, at work, or made by the guard and still looked through by a person."""
    reviewed = Q(status=Status.DRAFT, trigger__in=BY_ITSELF, draft_until__isnull=False)
    runs = CompactionRun.objects.filter(Q(status__in=OPEN) | reviewed, dialog_id=dialog_id)
    return runs.select_related("dialog").first()


def newest_run(dialog_id: UUID) -> CompactionRun | None:
    return CompactionRun.objects.filter(dialog_id=dialog_id).order_by("id").last()


def runs_of_turn(leaf: Message) -> list[CompactionRun]:
    """The runs that the guard began for the answer that is due now, oldest first.

    Those of another version of the message are not this request's; nor are those before a person tried again.
    """
    parents = dict(Message.objects.filter(course_id=leaf.course_id, turn=leaf.turn).values_list("pk", "parent_id"))
    branch, at = set[int](), leaf.pk
    while at in parents:
        branch.add(at)
        at = parents[at]
    runs = CompactionRun.objects.filter(leaf_id__in=branch, turn=leaf.turn, trigger__in=BY_ITSELF).exclude(
        status=Status.CANCELLED
    )
    given_up = (
        Generation.objects.filter(prompt_leaf_id__in=branch, status=Generation.Status.FAILED, retry_at=None)
        .order_by("-id")
        .first()
    )
    return list(runs.filter(queued_at__gt=given_up.started_at) if given_up else runs)


def may_compact(leaf: Message) -> bool:
    """May the answer to this message be cut for a compaction? At most three times in a turn, and not after one from
    this very message that freed nothing. One that a person undid is none."""
    runs = [run for run in runs_of_turn(leaf) if run.status != Status.UNDONE]
    cuts = Message.objects.filter(course_id=leaf.course_id, turn=leaf.turn, origin=MessageOrigin.CONTINUATION).count()
    return max(len(runs), cuts) < MOST_COMPACTIONS and not is_in_vain(runs, leaf)


def is_in_vain(runs: list[CompactionRun], leaf: Message) -> bool:
    """Has the newest run begun from this message and freed nothing?"""
    newest = runs[-1] if runs else None
    return newest is not None and newest.leaf_id == leaf.pk and newest.status not in (Status.APPLIED, Status.UNDONE)


def neglected_runs() -> list[int]:
    """Runs that nobody has taken up in time, and those whose worker died."""
    now = timezone.now()
    late = Q(status=Status.QUEUED, queued_at__lt=now - timedelta(seconds=2 * settings.DOMINDS_COMPACTION_WAIT_SECONDS))
    left = Q(status=Status.RUNNING, claimed_until__lt=now)
    return list(CompactionRun.objects.filter(late | left).values_list("pk", flat=True))


def overdue_drafts() -> list[CompactionRun]:
    """Previews whose time to review has run out: they apply themselves."""
    late = CompactionRun.objects.filter(status=Status.DRAFT, draft_until__lt=timezone.now())
    return list(late.select_related("dialog"))
