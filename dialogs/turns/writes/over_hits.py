"""An agent whose context is too much again and again: a fresh start is offered or made, as the settings say.

Counted are the over-hits of one agent within an hour, in all dialogs of the same owner. Once one has led to
something, it takes an hour until another may in the same dialog. A client's dialog is never begun afresh.
"""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from dialogs.models import Dialog
from dialogs.transcript.writes.dialog_row import lock, save
from health.compaction.config import AtMilestone
from health.configured import context_config
from health.models import CompactionRun, ContextEvent

HOUR = timedelta(hours=1)
MOST = 2
# Where a P1 agent is concerned, none is borne.
MOST_OF_P1 = 0
ESCALATED = "escalated"
DECLINED = "declined"


def escalate(row: Dialog, event: ContextEvent) -> None:
    """Say in the event what is to follow from it, if it is one too many."""
    wanted = context_config().on_over_hits
    if wanted is AtMilestone.NEVER or row.is_client_driven or not _is_one_too_many(row):
        return
    _mark(event, wanted)


def _is_one_too_many(row: Dialog) -> bool:
    recent = ContextEvent.objects.filter(
        owner=row.owner_id,
        agent=row.agent_id,
        code=ContextEvent.Code.OVER_HIT,
        happened_at__gt=timezone.now() - HOUR,
    )
    facts = recent.filter(dialog=row).values_list("facts", flat=True)
    most = MOST_OF_P1 if row.agent.is_p1 else MOST
    return recent.count() > most and not any(ESCALATED in one for one in facts)


def is_fresh_start_due(row: Dialog) -> bool:
    """The message that is to be answered was one over-hit too many, and nobody wants to be asked."""
    automatic = {"message": row.current_leaf_id, ESCALATED: str(AtMilestone.AUTOMATIC)}
    wanted = ContextEvent.objects.filter(
        dialog=row, code=ContextEvent.Code.OVER_HIT, **{f"facts__{name}": value for name, value in automatic.items()}
    )
    begun = CompactionRun.objects.filter(dialog=row, leaf=row.current_leaf_id, trigger=CompactionRun.Trigger.RESET)
    return wanted.exists() and not begun.exists()


def escalate_in_circle(row: Dialog) -> None:
    """An over-hit of an agent that goes round in circles is one too many, where nobody wants to be asked."""
    if context_config().on_over_hits is not AtMilestone.AUTOMATIC:
        return
    event = ContextEvent.objects.filter(
        dialog=row, code=ContextEvent.Code.OVER_HIT, facts__message=row.current_leaf_id
    ).first()
    if event is not None:
        _mark(event, AtMilestone.AUTOMATIC)


def _mark(event: ContextEvent, wanted: AtMilestone) -> None:
    event.facts[ESCALATED] = str(wanted)
    event.save(update_fields=["facts"])


@transaction.atomic
def decline(*, dialog: Dialog) -> None:
    """The offered fresh start is not wanted."""
    row = lock(dialog)
    for event in ContextEvent.objects.filter(dialog=row, facts__escalated=str(AtMilestone.OFFER)):
        event.facts[DECLINED] = True
        event.save(update_fields=["facts"])
    save(row)
