"""The right to drive a dialog: claimed by conditional update, renewed, released, and checked by every write.

A worker that lost the lease can write nothing more, as the token in the row has changed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import (
    BigIntegerField,
    Case,
    DateTimeField,
    F,
    PositiveSmallIntegerField,
    QuerySet,
    UUIDField,
    Value,
    When,
)
from django.utils import timezone

from dialogs.common.broadcast import changed_on_commit
from dialogs.models import Dialog, Generation
from dialogs.transcript.writes.dialog_row import lock
from dialogs.turns.reads.turns import lease_free, run_out
from dialogs.turns.writes.tool_calls import interrupt_running
from dominds.prepared import prepared, prepared_update
from dominds.rows import copied

# Seconds: a transaction that begins so long after its call has waited for a lock.
LATE_SECONDS = 1.0


class LeaseLost(Exception):
    """Another worker drives this dialog now."""


@dataclass(frozen=True)
class Claim:
    """The right to drive one dialog until the lease runs out, as of one wake-up.

    `deaths`: the workers in a row that died while they drove it, without a new message. `is_clients`: a client's
    process drives it; if a worker can claim it, that process has died.
    """

    dialog_id: UUID
    token: int
    wake_seq: int
    deaths: int = 0
    is_clients: bool = False


def _lease_end() -> datetime:
    return timezone.now() + timedelta(seconds=settings.DOMINDS_LEASE_SECONDS)


def claim(dialog_id: UUID) -> Claim | None:
    """Claim the dialog if work is due and nobody holds it; mark what a dead worker left as interrupted.

    After a wait for a locked database no lease counts as expired, as its holder could not renew it either.
    """
    asked = time.monotonic()
    with transaction.atomic():
        is_late = time.monotonic() - asked > LATE_SECONDS
        return _claim(dialog_id, *(NEVER if is_late else run_out()))


# In place of `run_out()`: with these no lease counts as expired.
NEVER = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def _claim(dialog_id: UUID, now: datetime, beyond: datetime) -> Claim | None:
    if not _take(dialog_id, now, beyond, _lease_end()):
        return None
    row = lock(dialog_id)
    _interrupt(row.pk, timezone.now())
    interrupt_running(row)
    return Claim(row.pk, row.lease_token, row.wake_seq, row.deaths, row.is_client_driven)


@prepared_update(UUIDField(), DateTimeField(), DateTimeField(), DateTimeField())
def _take(dialog_id: Any, now: Any, beyond: Any, until: Any) -> tuple[QuerySet[Dialog], dict[str, Any]]:
    due = Dialog.objects.filter(lease_free(now, beyond), pk=dialog_id, wake_seq__gt=F("handled_seq"))
    # The slice recorded no end and no message: its worker died.
    died = When(slice_seq=F("last_seq"), then=F("deaths") + 1)
    return due, {
        # The new token shuts out the former holder, even if that worker still runs.
        "lease_token": F("lease_token") + 1,
        "lease_until": until,
        "place_in_line": None,
        "deaths": Case(died, default=Value(0), output_field=PositiveSmallIntegerField()),
        "slice_seq": F("last_seq"),
    }


@prepared_update(UUIDField(), DateTimeField())
def _interrupt(dialog_id: Any, now: Any) -> tuple[QuerySet[Generation], dict[str, Any]]:
    left = Generation.objects.filter(dialog=dialog_id, status=Generation.Status.RUNNING)
    return left, {"status": Generation.Status.INTERRUPTED, "finished_at": now}


def take(row: Dialog) -> Claim:
    """Claim a dialog whose row is locked and that is at rest: nothing in it is unfinished. The caller saves `LEASE`."""
    row.lease_token += 1
    row.lease_until = _lease_end()
    return Claim(row.pk, row.lease_token, row.wake_seq)


LEASE = ("lease_token", "lease_until")


def renew(held: Claim) -> None:
    """Extend the lease. Raises LeaseLost when another worker holds it."""
    if not _held(held).update(lease_until=_lease_end()):
        raise LeaseLost


def release(held: Claim) -> bool:
    """Release the lease: all work up to this wake-up is done. False when new work came meanwhile."""
    if not _release(held.dialog_id, held.token, held.wake_seq):
        return False
    changed_on_commit(held.dialog_id)
    return True


@prepared_update(UUIDField(), BigIntegerField(), BigIntegerField())
def _release(dialog_id: Any, token: Any, wake_seq: Any) -> tuple[QuerySet[Dialog], dict[str, Any]]:
    held = Dialog.objects.filter(pk=dialog_id, lease_token=token, wake_seq=wake_seq)
    return held, {"handled_seq": wake_seq, "lease_until": None, "slice_seq": None, "version": F("version") + 1}


def let_go(row: Dialog, held: Claim) -> tuple[str, ...]:
    """Release a dialog whose row is locked. The caller saves the returned fields: none if new work has come."""
    if row.wake_seq != held.wake_seq:
        return ()
    row.handled_seq, row.lease_until, row.slice_seq = held.wake_seq, None, None
    return ("handled_seq", "lease_until", "slice_seq")


def give_back(held: Claim) -> None:
    """End a slice with work still due: the next worker may claim the dialog."""
    _held(held).update(lease_until=None, slice_seq=None)


def _held(held: Claim):  # type: ignore[no-untyped-def]  # a QuerySet, whose type needs the manager's
    return Dialog.objects.filter(pk=held.dialog_id, lease_token=held.token)


def fenced(held: Claim, *, known: Dialog | None = None) -> Dialog:
    """The dialog's row, locked, with what writing to it needs, if this claim still holds it. Raises LeaseLost.

    `known` is the dialog as just read: nothing is read again if it is unchanged, else not the rows it refers to.
    """
    if known and (same := _as_it_was(held, known)):
        return same
    row = (_row if known else _row_with_its_leaf).first(held.dialog_id, held.token)
    if row is None:
        raise LeaseLost
    if known:
        _share(known, row)
    return row


def _as_it_was(held: Claim, known: Dialog) -> Dialog | None:
    """A locked copy of `known`, if it has not changed. Writers change the copy before their write succeeds."""
    for (unchecked_calls,) in _unchanged(held.dialog_id, held.token, known.version):
        row = copied(known)
        row.unchecked_calls = unchecked_calls
        return row
    return None


@prepared(UUIDField(), BigIntegerField(), BigIntegerField())
def _unchanged(dialog_id: Any, token: Any, version: Any) -> QuerySet[Dialog, Any]:
    """Locks the row, and reads the column that may change without a new version, as no browser shows it."""
    found = Dialog.objects.select_for_update().filter(pk=dialog_id, lease_token=token, version=version)
    return found.order_by().values_list("unchecked_calls")


@prepared(UUIDField(), BigIntegerField())
def _row(dialog_id: Any, token: Any) -> QuerySet[Dialog]:
    return Dialog.objects.filter(pk=dialog_id, lease_token=token).select_for_update(of=("self",)).order_by()


@prepared(UUIDField(), BigIntegerField())
def _row_with_its_leaf(dialog_id: Any, token: Any) -> QuerySet[Dialog]:
    rows = Dialog.objects.filter(pk=dialog_id, lease_token=token).select_for_update(of=("self",)).order_by()
    return rows.select_related("current_leaf__course", "llm__provider", "llm__bounds", "agent")


def _share(known: Dialog, row: Dialog) -> None:
    """Reuse the related rows: reading them takes longer than all else about locking a row."""
    for name in ("current_leaf", "llm", "agent"):
        if name in known._state.fields_cache and getattr(known, f"{name}_id") == getattr(row, f"{name}_id"):
            setattr(row, name, getattr(known, name))
