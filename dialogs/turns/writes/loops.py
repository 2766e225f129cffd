"""An agent that goes round in circles: recorded and shown; one that goes on by itself rests until a person speaks."""

from __future__ import annotations

from dataclasses import asdict

from django.db import transaction

from dialogs.models import Dialog
from dialogs.models.dialog import PausedBy
from dialogs.transcript.reads.autonomous import active_run
from dialogs.transcript.writes.dialog_row import close_answer, lock, save
from dialogs.turns.reads.loops import stretch_of
from dialogs.turns.writes.events import Code, escalate_in_circle, is_fresh_start_due, log
from dialogs.turns.writes.lease import Claim, fenced
from health.loops import LoopFinding, find_loop
from health.models import ContextEvent


@transaction.atomic
def look_for_loop(held: Claim) -> None:
    """Look at what was done lately. What has led to something once does not do so again."""
    row = fenced(held)
    row.unchecked_calls = 0
    row.save(update_fields=["unchecked_calls"])
    stretch = stretch_of(row)
    finding = find_loop(stretch.steps, over_hits=stretch.over_hits)
    if finding is not None:
        _act_on(row, finding)


def _act_on(row: Dialog, finding: LoopFinding) -> None:
    """Record the loop, and pause an autonomous run over it, unless a fresh start follows by itself. A client's dialog
    is left alone.
    """
    if not row.is_client_driven:
        escalate_in_circle(row)
    pauses = active_run(row) is not None and not is_fresh_start_due(row)
    log(
        Code.LOOP_DETECTED,
        row,
        seen=[asdict(seen) for seen in finding.seen],
        over_hits=finding.over_hits,
        through=row.last_seq,
        course=row.current_leaf.course_id if row.current_leaf else None,
        paused=pauses,
    )
    if pauses:
        row.paused_by = PausedBy.LOOP
    if pauses and row.answer_due:
        close_answer(row, "paused_by")
    else:
        save(row, "paused_by")


@transaction.atomic
def dismiss(*, dialog: Dialog) -> None:
    """The notice is not wanted. Only what the agent does from now on counts."""
    row = lock(dialog)
    event = ContextEvent.objects.filter(dialog=row, code=Code.LOOP_DETECTED).order_by("-id").first()
    if event is not None:
        event.facts |= {"dismissed": True, "through": row.last_seq}
        event.save(update_fields=["facts"])
        save(row)
