"""What the driver needs to know of a dialog, and what a person sees of its turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile
from operator import attrgetter
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import BigIntegerField, Exists, F, OuterRef, PositiveIntegerField, Q, QuerySet, UUIDField
from django.utils import timezone

from dialogs.common.errors import headline
from dialogs.models import Dialog, Generation, Message, QueuedMessage, RemediationPrompt, ToolCall
from dialogs.models.message import MessageOrigin, Role
from dialogs.transcript.reads.autonomous import active_run
from dialogs.transcript.reads.tool_calls import CLEAR_MIND, UNMADE, call_rows, calls_of
from dialogs.turns.reads.remediation import is_reminded_first, may_be_asked
from dialogs.turns.state import Leaf, State
from dominds.prepared import Many, prepared
from health.loops import EVERY_CALLS
from health.models.claims import AHEAD
from health.monitor.remediation import Due

# The columns of a run that grow with a course: deferred where only a run's end is asked for.
LARGE = ("view", "removed", "coverage", "losses", "ledger", "steps", "warnings")

Status = Generation.Status


def state_of(dialog: Dialog, *, is_untried: bool = False) -> State:
    """The dialog's state. `is_untried`: nobody has tried to answer its newest message yet, so tries are not read."""
    leaf = dialog.current_leaf
    if dialog.is_client_driven:
        tried = {} if is_untried else _tried(dialog)
        return _clients_state(dialog, leaf, tried) if leaf and dialog.answer_due else State(answer_due=False)
    run = active_run(dialog)
    return State(
        answer_due=dialog.answer_due,
        stop_requested=dialog.stop_requested,
        trashed=dialog.trashed_at is not None,
        paused=bool(dialog.paused_by),
        **_tried(dialog),
        queued=len(_queued_in(dialog.pk)),
        leaf=_kind_of(leaf),
        **_asked_for(dialog, leaf),
        reminds=is_reminded_first(dialog),
        autonomous=run is not None,
        run_used_up=run is not None and run.generations >= run.max_generations,
        owner_off=run is not None and not _in_use(dialog.owner_id),
        continuing=leaf is not None and leaf.origin == MessageOrigin.CONTINUATION,
        loop_check_due=dialog.unchecked_calls >= EVERY_CALLS,
        **(_round(dialog, leaf) if leaf and dialog.answer_due else {}),
    )


@prepared(BigIntegerField())
def _in_use(account_id: Any) -> QuerySet[User, Any]:
    return User.objects.filter(pk=account_id, is_active=True).order_by().values_list("pk")


@prepared(UUIDField())
def _queued_in(dialog_id: Any) -> QuerySet[QueuedMessage, Any]:
    return QueuedMessage.objects.filter(dialog=dialog_id).order_by().values_list("pk")


@prepared(UUIDField(), PositiveIntegerField())
def _asked_since(dialog_id: Any, seq: Any) -> QuerySet[RemediationPrompt, Any]:
    asked = RemediationPrompt.objects.filter(dialog=dialog_id, notice="", message__seq__gt=seq)
    return asked.order_by().values_list("pk")


def _asked_for(dialog: Dialog, leaf: Message | None) -> dict[str, Any]:
    """The prompt that remediation makes due, and the number of its prompts since a person's last message."""
    asked = len(_asked_since(dialog.pk, dialog.counted_from))
    is_due = leaf is not None and bool(leaf.course.due) and may_be_asked(dialog)
    return {"due": Due(leaf.course.due) if leaf and is_due else Due.NOTHING, "prompts": asked}


def _clients_state(dialog: Dialog, leaf: Message, tried: dict[str, Any]) -> State:
    """The state of a dialog that a client drives. Only an answer may be due: it has no queue, prompts or pushes."""
    return State(
        answer_due=True,
        client_driven=True,
        stop_requested=dialog.stop_requested,
        trashed=dialog.trashed_at is not None,
        **tried,
        leaf=_kind_of(leaf),
        continuing=leaf.origin == MessageOrigin.CONTINUATION,
        loop_check_due=dialog.unchecked_calls >= EVERY_CALLS,
        **(_round(dialog, leaf) if leaf.role in (Role.ASSISTANT, Role.TOOL) else {}),
    )


def _tried(dialog: Dialog) -> dict[str, Any]:
    found = _all_tries(dialog)
    tries = _of_due_answer(found)
    return {
        "failures": sum(generation.status == Status.FAILED for generation in tries),
        "interruptions": sum(generation.status == Status.INTERRUPTED for generation in tries),
        "retry_in": seconds_left(tries[0].finished_at, tries[0].retry_at) if tries else None,
        "overflowed": bool(tries) and tries[0].error_code == "context_overflow",
        "filled": bool(found) and found[0].error_code == "context_filled",
    }


def _kind_of(leaf: Message | None) -> Leaf:
    if leaf is None:
        return Leaf.NONE
    if leaf.role in (Role.USER, Role.SYSTEM):
        return Leaf.TYPED if leaf.origin in (MessageOrigin.TYPED, MessageOrigin.CLIENT) else Leaf.INSERTED
    return Leaf.RESULT if leaf.role == Role.TOOL else Leaf.ANSWER


def _round(dialog: Dialog, leaf: Message) -> dict[str, Any]:
    """The state of the newest answer's calls. `clear_mind` is made last, after all others.

    A call whose result is already a message belongs to another branch, and does not count.
    """
    if leaf.role == Role.TOOL:
        return {"in_vain": _in_vain(dialog, leaf)}
    ours = [call for call in calls_of(leaf) if call.status != ToolCall.Status.CLIENT]
    calls = [call for call in ours if call.result_message_id is None]
    waiting = any(call.status == ToolCall.Status.WAITING for call in calls)
    others = any(call.is_open and call.status != ToolCall.Status.WAITING and call.name != CLEAR_MIND for call in calls)
    return {
        "round_open": bool(calls),
        "waiting_for_person": waiting and not others,
        "rounds": _calling(dialog, leaf).count() if calls else 0,
    }


def _calling(dialog: Dialog, leaf: Message) -> QuerySet[Message]:
    """The answers with calls since a person's last message or the last push, newest first; automatic prompts and new
    courses do not end that. In a client's conversation: those of this turn."""
    calling = Message.objects.filter(Exists(ToolCall.objects.filter(message=OuterRef("pk"))), dialog=leaf.dialog_id)
    if dialog.is_client_driven:
        return calling.filter(course_id=leaf.course_id, turn=leaf.turn).order_by("-seq")
    return calling.filter(seq__gt=dialog.counted_from).order_by("-seq")


def _in_vain(dialog: Dialog, result: Message) -> int:
    """How many of the newest answers, in a row, held only calls that could not be made, and none that was nearer to it
    than the newest: a model that corrects itself step by step goes on."""
    if not result.content.startswith(UNMADE):
        return 0
    answers = list(_calling(dialog, result).values_list("pk", flat=True))
    found = call_rows(answers)
    nearest = [max(row.nearness for row in found[answer]) for answer in answers]
    return sum(1 for _ in takewhile(lambda near: nearest[0] <= near < len(UNMADE), nearest))


DRIVEN = ("agent", "llm__provider", "llm__bounds", "llm__calibration", "client", "current_leaf__course__head_run")
# Large columns of the applied run that no request is built from; they grow with the course.
NOT_SENT = tuple(f"current_leaf__course__head_run__{name}" for name in LARGE if name != "view")


def driven(dialog_id: UUID) -> Dialog | None:
    """The dialog with all rows that deciding and building a request need; None if it is deleted."""
    return _driven.first(dialog_id)


@prepared(UUIDField())
def _driven(dialog_id: Any) -> QuerySet[Dialog]:
    # `first()` would sort, which costs more than a fifth of this.
    return Dialog.objects.select_related(*DRIVEN).defer(*NOT_SENT).filter(pk=dialog_id).order_by()


def dialog_to_drive(dialog_id: UUID) -> Dialog:
    """`driven`, but raises Dialog.DoesNotExist."""
    found = driven(dialog_id)
    if found is None:
        raise Dialog.DoesNotExist
    return found


def tries_of_due_answer(dialog: Dialog) -> list[Generation]:
    """The tries of the due answer, newest first: those that ended with another try to follow."""
    return _of_due_answer(_all_tries(dialog))


def _all_tries(dialog: Dialog) -> list[Generation]:
    """All generations that answered the newest message, newest first."""
    if dialog.current_leaf_id is None:
        return []
    return sorted(_tries_of(dialog.current_leaf_id), key=attrgetter("pk"), reverse=True)


@prepared(BigIntegerField())
def _tries_of(message_id: Any) -> QuerySet[Generation]:
    return Generation.objects.filter(prompt_leaf=message_id).order_by()


def _of_due_answer(found: list[Generation]) -> list[Generation]:
    tries: list[Generation] = []
    for generation in found:
        if generation.status != Status.INTERRUPTED and generation.retry_at is None:
            break
        tries.append(generation)
    return tries


def seconds_left(since: datetime | None, until: datetime | None) -> float | None:
    """Seconds left until the next try; 0 if the wait began in the future because the clock was set back."""
    now = timezone.now()
    if until is None:
        return None
    return 0.0 if since is not None and since > now + AHEAD else max(0.0, (until - now).total_seconds())


def is_stop_requested(dialog_id: UUID) -> bool:
    """Also true if the dialog is deleted or in the trash: nobody waits for the answer then."""
    return bool(unwanted([dialog_id]))


def unwanted(dialog_ids: Sequence[UUID]) -> set[UUID]:
    """Those of these dialogs whose answer a person asks to stop, that are in the trash, or that are gone."""
    return set(dialog_ids).difference(dialog_id for (dialog_id,) in _wanted(dialog_ids))


@prepared(Many(UUIDField()))
def _wanted(dialog_ids: Any) -> QuerySet[Dialog, Any]:
    return Dialog.objects.filter(pk__in=dialog_ids, stop_requested=False).order_by().values_list("pk")


def is_message_waiting(dialog_id: UUID) -> bool:
    """Has a person queued a message?"""
    return QueuedMessage.objects.filter(dialog=dialog_id).exists()


def lease_free(now: Any, beyond: Any) -> Q:
    """Condition: no worker drives the dialog (never claimed, released, lease expired). Its times are from `run_out`."""
    return Q(lease_until=None) | Q(lease_until__lt=now) | Q(lease_until__gt=beyond)


def run_out() -> tuple[datetime, datetime]:
    """Two times: a lease has expired if it ends before the first; or after the second, which is longer than any lease,
    as the clock was then set back."""
    now, longest = timezone.now(), max(settings.DOMINDS_LEASE_SECONDS, settings.DOMINDS_BACKOFF_MAX_SECONDS)
    return now, now + timedelta(seconds=longest) + AHEAD


def due_dialogs() -> list[UUID]:
    """Dialogs with work due that no worker drives, without those that wait for their next try."""
    now = timezone.now()
    # A try that ended in the future is from before the clock was set back: its wait does not count.
    ended = Generation.objects.filter(prompt_leaf=OuterRef("current_leaf"), finished_at__lte=now + AHEAD)
    waiting = ended.filter(retry_at__gt=now)
    due = Dialog.objects.filter(lease_free(*run_out()), ~Exists(waiting), wake_seq__gt=F("handled_seq"))
    return list(due.values_list("pk", flat=True))


def failing_for(dialog_id: UUID) -> float | None:
    """Seconds since the first try of the due answer failed; None unless an autonomous run is active."""
    dialog = Dialog.objects.get(pk=dialog_id)
    if dialog.is_client_driven or dialog.paused_by or active_run(dialog) is None:
        return None
    ended = [one.finished_at for one in tries_of_due_answer(dialog) if one.finished_at and one.retry_at]
    return (timezone.now() - min(ended)).total_seconds() if ended else 0.0


@dataclass(frozen=True, kw_only=True)
class TurnStatus:
    """The running turn, as shown to a person."""

    busy: bool
    stopping: bool
    generating: bool
    # The time of the next try after a provider failure, and the failure. None after a refusal as too long: the dialog
    # is compacted first.
    retry_at: datetime | None
    error: str
    # In autonomous mode: the time until which it is tried again.
    tried_until: datetime | None
    # The place in the provider's queue while all its slots are taken; 1 is the next.
    place: int | None
    # The time since which due work has been waiting for a worker.
    waiting_since: datetime | None


def turn_status(dialog: Dialog) -> TurnStatus:
    running = bool(_running(dialog.pk))
    tries = tries_of_due_answer(dialog) if dialog.answer_due else []
    failed = tries[0] if tries and tries[0].retry_at and tries[0].error_code != "context_overflow" else None
    untaken = dialog.is_busy and (dialog.lease_until is None or dialog.lease_until < timezone.now())
    return TurnStatus(
        busy=dialog.is_busy,
        stopping=dialog.stop_requested,
        generating=running,
        retry_at=failed.retry_at if failed and not running else None,
        error=str(headline(failed.error_code)) if failed and not running else "",
        tried_until=_tried_until(dialog) if failed and not running else None,
        place=None if untaken else dialog.place_in_line,
        waiting_since=dialog.active_at if untaken else None,
    )


@prepared(UUIDField())
def _running(dialog_id: Any) -> QuerySet[Generation, Any]:
    return Generation.objects.filter(dialog=dialog_id, status=Status.RUNNING).order_by().values_list("pk")[:1]


def _tried_until(dialog: Dialog) -> datetime | None:
    seconds = failing_for(dialog.pk)
    return None if seconds is None else timezone.now() + timedelta(seconds=settings.DOMINDS_OUTAGE_SECONDS - seconds)
