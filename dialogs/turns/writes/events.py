"""Records context events as they happen, over-hits and loops among them, and acts on them.

Three warnings in an hour open a cleanup task. After too many over-hits of one agent within an hour, in all dialogs of
the same owner, a fresh start is offered or made, as the settings say; in one dialog at most once an hour. A client's
dialog never gets a fresh start.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _

from dialogs.common.errors import DialogError
from dialogs.models import Dialog
from dialogs.models.dialog import PausedBy
from dialogs.transcript.reads.autonomous import active_run
from dialogs.transcript.writes.dialog_row import close_answer, lock, save
from dialogs.turns.reads.events import recent_steps
from dialogs.turns.state import Guarding
from dialogs.turns.writes.lease import Claim, fenced
from health.compaction.config import AtMilestone
from health.compaction.terms.pressure import Pressure
from health.configured import context_config
from health.loops import EVERY_CALLS, LoopFinding, find_loop
from health.models import CleanupTask, CompactionRun, ContextEvent

Code = ContextEvent.Code
WARNINGS = 3
HOUR = timedelta(hours=1)
STEPS = ("pin", "archive", "limit", "course")
# Over-hits within an hour; an agent with priority P1 may have none.
MOST, MOST_OF_P1 = 2, 0
ESCALATED, DECLINED = "escalated", "declined"


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


@transaction.atomic
def note_pressure(held: Claim, guard: Guarding) -> bool:
    """Record a warning, once a turn, or an over-hit (too much before a compaction), once a message.

    True for a new over-hit: then the driver checks for a loop, also after a crash.
    """
    row = fenced(held)
    leaf = row.current_leaf
    if leaf is None:
        return False
    if _once(Code.WARNING, row, guard, course=leaf.course_id, turn=leaf.turn):
        open_if_frequent(row)
    if guard.pressure is Pressure.OVERFLOW and (over_hit := _once(Code.OVER_HIT, row, guard, message=leaf.pk)):
        escalate(row, over_hit)
        row.unchecked_calls = EVERY_CALLS
        row.save(update_fields=["unchecked_calls"])
        return True
    return False


def _once(code: str, row: Dialog, guard: Guarding, **place: Any) -> ContextEvent | None:
    """Record the event unless this `place` in the dialog has one, as the guard looks many times; then None."""
    known = {f"facts__{name}": value for name, value in place.items()}
    if ContextEvent.objects.filter(dialog=row, code=code, **known).exists():
        return None
    return log(code, row, estimated=guard.tokens, limit=guard.limit, **place)


def escalate(row: Dialog, event: ContextEvent) -> None:
    """If the event is one over-hit too many, store in it whether a fresh start is offered or made."""
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
    """Was the message to answer one over-hit too many, and are fresh starts automatic?"""
    automatic = {"message": row.current_leaf_id, ESCALATED: str(AtMilestone.AUTOMATIC)}
    wanted = ContextEvent.objects.filter(
        dialog=row, code=ContextEvent.Code.OVER_HIT, **{f"facts__{name}": value for name, value in automatic.items()}
    )
    begun = CompactionRun.objects.filter(dialog=row, leaf=row.current_leaf_id, trigger=CompactionRun.Trigger.RESET)
    return wanted.exists() and not begun.exists()


def escalate_in_loop(row: Dialog) -> None:
    """In a loop one over-hit is already too many, if fresh starts are automatic."""
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
    """A person declines the fresh start that was offered."""
    row = lock(dialog)
    for event in ContextEvent.objects.filter(dialog=row, facts__escalated=str(AtMilestone.OFFER)):
        event.facts[DECLINED] = True
        event.save(update_fields=["facts"])
    save(row)


@transaction.atomic
def look_for_loop(held: Claim) -> None:
    """Check the steps since the last check for a loop."""
    row = fenced(held)
    row.unchecked_calls = 0
    row.save(update_fields=["unchecked_calls"])
    stretch = recent_steps(row)
    finding = find_loop(stretch.steps, over_hits=stretch.over_hits)
    if finding is not None:
        _act_on(row, finding)


def _act_on(row: Dialog, finding: LoopFinding) -> None:
    """Record the loop; pause an autonomous run unless an automatic fresh start follows. A client's has neither."""
    if not row.is_client_driven:
        escalate_in_loop(row)
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
    """A person dismisses the loop notice: only later calls count for the next one."""
    row = lock(dialog)
    event = ContextEvent.objects.filter(dialog=row, code=Code.LOOP_DETECTED).order_by("-id").first()
    if event is not None:
        event.facts |= {"dismissed": True, "through": row.last_seq}
        event.save(update_fields=["facts"])
        save(row)
