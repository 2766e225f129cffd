"""The writes of a round of tool calls: each step is one transaction, fenced by the lease."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from dialogs.agents.writes import add_reminder
from dialogs.common.errors import DialogError
from dialogs.common.text import storable
from dialogs.context.carry_over import Handover, handover_for
from dialogs.driver.writes import courses
from dialogs.models import Course, Dialog, Question, ToolCall
from dialogs.models.reminder import Author
from dialogs.transcript.reads.tool_calls import calls_of
from dialogs.transcript.writes.dialog_row import current_course, save
from dialogs.turns.reads.remediation import has_curated, only_clears
from dialogs.turns.writes.lease import Claim, fenced
from dialogs.turns.writes.remediation import mark_curated
from dialogs.turns.writes.tool_calls import add_results, close_call

Status = ToolCall.Status
FAILED = (Status.FAILED, Status.INTERRUPTED, Status.WITHDRAWN)
NOT_CLEARED = "Not cleared, because these calls of the same round failed: {names}. Look at their results first."
NOTHING_TO_CLEAR = (
    "Not cleared: in the newest courses you did nothing but clear. Go on with the first actionable step, or answer "
    "the person in words."
)
NOT_KEPT = "Not cleared, because the reminder was not kept: {why}"
CLEARED = "A new course begins."
CLEARED_BY_ANOTHER = "Another clear_mind of this round begins the new course; the reminder is kept."


@transaction.atomic
def start_call(held: Claim, call: ToolCall, *, idempotent: bool, attempt: int = 1) -> None:
    """Record the call as running, before it is made."""
    row = fenced(held)
    call.status, call.idempotent, call.started_at = Status.RUNNING, idempotent, timezone.now()
    call.attempt, call.retry_at = attempt, None
    call.save(update_fields=["status", "idempotent", "started_at", "attempt", "retry_at"])
    save(row)


@transaction.atomic
def await_retry(held: Claim, call: ToolCall, *, attempt: int, most: int, seconds: float) -> None:
    """Record the call as not running between two tries, in case this worker dies."""
    fenced_and_shown(held)
    call.status, call.attempt, call.most_attempts = Status.PENDING, attempt, most
    call.retry_at = timezone.now() + timedelta(seconds=seconds)
    call.save(update_fields=["status", "attempt", "most_attempts", "retry_at"])


@transaction.atomic
def end_call(held: Claim, call: ToolCall, *, failed: bool, result: str) -> None:
    close_call(fenced_and_shown(held), call, Status.FAILED if failed else Status.DONE, result)


def fenced_and_shown(held: Claim) -> Dialog:
    row = fenced(held)
    save(row)
    return row


@transaction.atomic
def ask_person(held: Claim, call: ToolCall, *, text: str, choices: Sequence[str]) -> None:
    """Store the question for the person, once however often this is called. The dialog waits without a worker."""
    row = fenced_and_shown(held)
    asked = {"dialog": row, "text": storable(text), "choices": [storable(c) for c in choices]}
    _question, is_new = Question.objects.get_or_create(tool_call=call, defaults=asked)
    if is_new:
        call.status, call.started_at = Status.WAITING, timezone.now()
        call.save(update_fields=["status", "started_at"])


@transaction.atomic
def close_round(held: Claim) -> None:
    """Add the results as messages, if every call of the newest answer is closed."""
    row = fenced(held)
    if row.current_leaf is not None and not any(call.is_open for call in calls_of(row.current_leaf)):
        add_results(row)
        save(row, "current_leaf", "last_seq")


@transaction.atomic
def perform(held: Claim, call: ToolCall, action: Callable[[Dialog], str]) -> None:
    """Change the dialog and record the call's result, both or neither."""
    row = fenced(held)
    result = action(row)
    close_call(row, call, Status.DONE, result)
    save(row)


@transaction.atomic
def keep_reminder(held: Claim, call: ToolCall, *, reminder: str) -> None:
    """A `clear_mind` before the last of its round: only its reminder is stored, the last one opens the course."""
    row = fenced_and_shown(held)
    if _kept(row, call, reminder):
        close_call(row, call, Status.DONE, CLEARED_BY_ANOTHER)


def clear_mind(held: Claim, call: ToolCall, *, reminder: str) -> None:
    """Open a new course for the agent, unless another call of this round failed or still waits for a person.

    Refused if the agent does nothing else: rounds are limited, courses are not. An agent that wrote a reminder in this
    course has chosen itself what is carried over.
    """
    curated = bool(reminder.strip()) or has_curated(call.message.course_id)
    _clear_mind(held, call, reminder=reminder, handover=handover_for(held.dialog_id, curated=curated))


@transaction.atomic
def _clear_mind(held: Claim, call: ToolCall, *, reminder: str, handover: Handover | None) -> None:
    row = fenced(held)
    siblings = [other for other in calls_of(call.message) if other.pk != call.pk]
    if any(other.is_open for other in siblings):
        return
    if refusal := _refusal(row, siblings):
        close_call(row, call, Status.FAILED, refusal)
        save(row)
        return
    if not _kept(row, call, reminder):
        save(row)
        return
    close_call(row, call, Status.DONE, CLEARED)
    courses.clear_mind(row, opened_by=Course.OpenedBy.AGENT, handover=handover)


def _kept(row: Dialog, call: ToolCall, reminder: str) -> bool:
    """Add the reminder, if there is one. False if it could not be added; the call then fails with the reason."""
    if not reminder.strip():
        return True
    try:
        add_reminder(dialog=row, content=reminder, author=Author.AGENT)
    except DialogError as error:
        close_call(row, call, Status.FAILED, NOT_KEPT.format(why=error))
        return False
    mark_curated(current_course(row))
    return True


def _refusal(row: Dialog, siblings: Sequence[ToolCall]) -> str:
    failed = [other.name for other in siblings if other.status in FAILED]
    if failed:
        return NOT_CLEARED.format(names=", ".join(failed))
    return NOTHING_TO_CLEAR if only_clears(row) else ""
