"""Erasing for good: the one exception to append-only. Everything else only moves to the trash."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from dialogs.common.broadcast import changed_on_commit
from dialogs.common.errors import DialogError
from dialogs.models import Blob, Dialog, Generation, Message
from dialogs.transcript.attachments import hashes_in
from dialogs.transcript.writes.dialog_row import lock
from health import rewards

# The keys of a generation's manifest that may hold the hash of a blob: texts that were sent, and our own record of what
# the request began with, which no file takes along.
SENT_KEYS = ("instructions", "taskdoc", "reminders", "tools", "notice", "urge", "task", "changed")
BLOB_KEYS = (*SENT_KEYS, "begins")


@transaction.atomic
def erase_dialog(*, dialog: Dialog) -> None:
    """Delete a dialog from the trash with all that was said, written and recorded in it, and blobs of its own."""
    row = lock(dialog)
    if row.trashed_at is None:
        raise DialogError(_("Only a dialog in the trash can be erased."))
    _erase(row)


def empty_trash(*, older_than_days: float) -> int:
    """Erase what has been in the trash for longer, each dialog in a transaction of its own; how many."""
    before = timezone.now() - timedelta(days=older_than_days)
    due = Dialog.objects.filter(trashed_at__lte=before).values_list("pk", flat=True)
    return sum(_erase_if_still_due(dialog_id, before) for dialog_id in list(due))


@transaction.atomic
def _erase_if_still_due(dialog_id: UUID, before: datetime) -> bool:
    """False when it was restored, or erased by another process, in the meantime."""
    row = Dialog.objects.select_for_update().filter(pk=dialog_id, trashed_at__lte=before).first()
    if row is None:
        return False
    _erase(row)
    return True


def _erase(row: Dialog) -> None:
    """A worker that is still answering loses its lease with the row, and writes nothing more."""
    dialog_id = row.pk
    blobs = _blobs_of(Generation.objects.filter(dialog=row)) | _images_of(Message.objects.filter(dialog=row))
    row.delete()
    _drop_unused(blobs)
    # Last: whoever logs a run of it from then on finds that it is gone.
    transaction.on_commit(lambda: rewards.forget(dialog_id))
    changed_on_commit(dialog_id)


def _blobs_of(generations: QuerySet[Generation]) -> set[str]:
    """The hashes in their manifests. The database picks them out: a manifest also holds long lists of messages."""
    manifests = generations.values_list(*(f"manifest__{key}" for key in BLOB_KEYS))
    return {sha256 for hashes in manifests.iterator() for sha256 in hashes if sha256}


def _images_of(messages: QuerySet[Message]) -> set[str]:
    """The hashes of what clients attached to these messages."""
    return set(hashes_in(messages.filter(parts__has_key="wire").values_list("parts", flat=True).iterator()))


def _drop_unused(blobs: set[str]) -> None:
    """Locks the blobs first: a generation that begins with one at this moment waits, then stores it anew."""
    locked = Blob.objects.select_for_update().filter(pk__in=blobs).order_by("pk")
    mine = {blob.pk for blob in locked.only("pk")}
    used = _blobs_of(Generation.objects.all()) | _images_of(Message.objects.all()) if mine else set()
    Blob.objects.filter(pk__in=mine - used).delete()
