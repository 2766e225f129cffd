"""Whether a fresh start is offered in a dialog, because its agent's context was too much again and again."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import DateTimeField, QuerySet, UUIDField
from django.utils import timezone

from dialogs.llms.guard import may_be_guarded
from dialogs.models import Dialog
from dominds.prepared import prepared
from health.compaction.config import AtMilestone
from health.models import CompactionRun, ContextEvent

Status = CompactionRun.Status
CAME_TO_NOTHING = (Status.SKIPPED, Status.FAILED, Status.CANCELLED)


def is_fresh_start_offered(dialog: Dialog) -> bool:
    """For an hour, until it is made or declined. Where nobody is guarded nothing is asked."""
    if not may_be_guarded(dialog):
        return False
    event = _offers.first(dialog.pk, timezone.now() - timedelta(hours=1))
    if event is None or event.facts.get("declined"):
        return False
    return not was_reset_since(dialog, event.happened_at)


@prepared(UUIDField(), DateTimeField())
def _offers(dialog_id: Any, since: Any) -> QuerySet[ContextEvent]:
    return ContextEvent.objects.filter(
        dialog=dialog_id,
        code=ContextEvent.Code.OVER_HIT,
        facts__escalated=str(AtMilestone.OFFER),
        happened_at__gt=since,
    )[:1]


def was_reset_since(dialog: Dialog, moment: datetime) -> bool:
    """Or is about to be. One that came to nothing may be wished again."""
    resets = CompactionRun.objects.filter(dialog=dialog, trigger=CompactionRun.Trigger.RESET, queued_at__gt=moment)
    return resets.exclude(status__in=CAME_TO_NOTHING).exists()
