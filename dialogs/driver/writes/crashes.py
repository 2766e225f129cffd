"""Slices of the driver that fail outside a generation: counted, tried again a little later, and ended after three.

What a slice raised is known at once; a worker that was killed is counted by whoever claims the dialog next
(`lease.claim`). Either way the person is told: without that a turn would begin again for ever.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from dialogs.models import Dialog, Generation
from dialogs.models.dialog import PausedBy
from dialogs.transcript.writes.dialog_row import close_answer, save
from dialogs.turns.state import doubled
from dialogs.turns.writes.events import Code, log
from dialogs.turns.writes.generations import add_generation
from dialogs.turns.writes.lease import Claim, LeaseLost, fenced
from dialogs.turns.writes.tool_calls import withdraw_open_calls

logger = logging.getLogger(__name__)
MOST_CRASHES = 3
SLICE_FAILED, WORKER_DIED = "slice_failed", "worker_died"
NOT_MADE = "Ended by a fault of Dominds. What the call had done by then is not known."


def record_crash(held: Claim, error: BaseException) -> None:
    """Count a slice that failed, and let the next one wait; the third in a turn ends it."""
    with suppress(LeaseLost):
        crashes = _count(held)
        if crashes >= MOST_CRASHES:
            end_turn(held, error, crashes=crashes)
        else:
            logger.warning("Dialog %s failed, %s of %s times", held.dialog_id, crashes, MOST_CRASHES, exc_info=error)


@transaction.atomic
def _count(held: Claim) -> int:
    row = fenced(held)
    row.crashes += 1
    wait = doubled(
        failures=row.crashes,
        base=settings.DOMINDS_BACKOFF_BASE_SECONDS,
        most=settings.DOMINDS_BACKOFF_MAX_SECONDS,
    )
    # The sweeper takes it up then; until then nobody can.
    row.lease_until, row.slice_seq = timezone.now() + timedelta(seconds=wait), None
    save(row, "crashes", "lease_until", "slice_seq")
    return row.crashes


def end_turn(held: Claim, error: BaseException | None, *, crashes: int = 1) -> None:
    """End the turn in words, and let the dialog rest until a person goes on, whatever still waits. Raises LeaseLost.

    `error` is what the last slice raised, None where its worker died.
    """
    error = _inmost(error)
    logger.error("Dialog %s: its turn was ended after %s failures", held.dialog_id, crashes, exc_info=error)
    try:
        _say_so(held, type(error).__name__ if error else "", crashes)
    except LeaseLost:
        raise
    except Exception:
        logger.exception("Dialog %s: nothing could be said of it", held.dialog_id)
        _rest(held)


def _inmost(error: BaseException | None) -> BaseException | None:
    """What a group of tasks raised, where it is one thing."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


@transaction.atomic
def _say_so(held: Claim, cause: str, crashes: int) -> None:
    row = fenced(held)
    withdraw_open_calls(row, words=NOT_MADE)
    _add_failure(row, held, cause)
    log(Code.SLICE_FAILED, row, cause=cause or WORKER_DIED, failures=crashes)
    row.paused_by, row.stop_requested, row.crashes, row.deaths = PausedBy.FAILURE, False, 0, 0
    row.handled_seq, row.lease_until, row.slice_seq = row.wake_seq, None, None
    close_answer(row, "paused_by", "stop_requested", "crashes", "deaths", "handled_seq", "lease_until", "slice_seq")


def _add_failure(row: Dialog, held: Claim, cause: str) -> None:
    """A try that failed, below the newest message: there a person looks for the answer."""
    left = Generation.objects.filter(dialog=row, status=Generation.Status.RUNNING)
    left.update(status=Generation.Status.INTERRUPTED, finished_at=timezone.now())
    leaf = row.current_leaf
    if leaf is None:
        return
    add_generation(
        row,
        held,
        leaf,
        status=Generation.Status.FAILED,
        error_code=SLICE_FAILED if cause else WORKER_DIED,
        error_message=cause,
        finished_at=timezone.now(),
    )


def _rest(held: Claim) -> None:
    Dialog.objects.filter(pk=held.dialog_id, lease_token=held.token).update(
        answer_due=False,
        paused_by=PausedBy.FAILURE,
        stop_requested=False,
        crashes=0,
        deaths=0,
        handled_seq=F("wake_seq"),
        lease_until=None,
        slice_seq=None,
        version=F("version") + 1,
    )
