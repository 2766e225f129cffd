"""Erasing for good: the one exception to append-only. Everything else only moves to the trash."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from dialogs.broadcast import changed_on_commit
from dialogs.errors import DialogError
from dialogs.models import Blob, Dialog, Generation
from dialogs.services.rows import lock

# The keys of a generation's manifest that hold the hash of a blob.
BLOB_KEYS = ("instructions",)


@transaction.atomic
def erase_dialog(*, dialog: Dialog) -> None:
    """Delete a dialog from the trash with its messages, generations, readings, and blobs of its own."""
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
    blobs = _blobs_of(row)
    row.delete()
    for sha256 in sorted(blobs):
        _drop_blob_if_unused(sha256)
    changed_on_commit(dialog_id)


def _blobs_of(row: Dialog) -> set[str]:
    manifests = Generation.objects.filter(dialog=row).values_list("manifest", flat=True)
    return {manifest[key] for manifest in manifests for key in BLOB_KEYS if key in manifest}


def _drop_blob_if_unused(sha256: str) -> None:
    """Locks the blob first: a generation that begins with it at this moment waits, then stores it anew."""
    blob = Blob.objects.select_for_update().filter(pk=sha256).first()
    used = any(Generation.objects.filter(**{f"manifest__{key}": sha256}).exists() for key in BLOB_KEYS)
    if blob is not None and not used:
        blob.delete()
