"""What all writes to a dialog share: the row lock, the version, waking the driver, adding a message, cleaning typed
text. And erasing, the one exception to append-only.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet, UUIDField
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from dialogs.common.broadcast import changed_on_commit
from dialogs.common.errors import DialogBusy, DialogError
from dialogs.common.schedule import drive_on_commit
from dialogs.common.text import storable
from dialogs.models import Blob, Course, Dialog, Generation, Message, SearchText
from dialogs.models.message import MessageOrigin, Role
from dialogs.transcript.attachments import hashes_in
from dialogs.transcript.search import index_words
from dominds.prepared import prepared
from dominds.rows import insert, new, update
from health import reward_log

# The columns that change when an answer becomes due.
WANTED = (
    *("wake_seq", "answer_due", "stop_requested", "active_at", "current_leaf", "last_seq"),
    *("archived_at", "paused_by", "crashes", "counted_from"),
)


def lock(dialog: Dialog | UUID) -> Dialog:
    """The dialog's row, fresh and locked until the transaction ends. SQLite locks at BEGIN IMMEDIATE."""
    row = _locked.first(dialog.pk if isinstance(dialog, Dialog) else dialog)
    if row is None:
        raise Dialog.DoesNotExist
    return row


@prepared(UUIDField())
def _locked(dialog_id: Any) -> QuerySet[Dialog]:
    return Dialog.objects.select_for_update().filter(pk=dialog_id).order_by()


def written_here(row: Dialog) -> Dialog:
    """The row of a dialog that people write in the browser. Raises DialogError where a client drives it."""
    if row.is_client_driven:
        raise DialogError(_("A client drives this conversation: Dominds adds nothing to it. Write in the client."))
    return row


def out_of_trash(row: Dialog) -> Dialog:
    """The row of a dialog that is not in the trash. Raises DialogError where it is."""
    if row.trashed_at:
        raise DialogError(_("This dialog is in the trash. Restore it to go on."))
    return row


def idle(row: Dialog) -> Dialog:
    """The row of a dialog in which no turn is under way. Raises DialogBusy where one is."""
    if row.is_busy:
        raise DialogBusy(_("The agent is still answering. Stop it or wait, then try again."))
    return row


def save(row: Dialog, *fields: str) -> None:
    """Write these fields, raise the version, and tell the browsers after the commit."""
    row.version += 1
    update(row, "version", *fields)
    changed_on_commit(row.pk)


def want_answer(row: Dialog) -> None:
    """The current leaf wants an answer: wake the driver. The caller saves nothing more."""
    row.wake_seq += 1
    row.answer_due = True
    row.stop_requested = False
    row.active_at = timezone.now()
    save(row, *WANTED)
    drive_on_commit(row.pk)


def count_anew(row: Dialog) -> None:
    """A person has written, or a run pushes on: count crashes, rounds and automatic prompts from here.

    Call it before the message is added. Changes `row`, which the caller saves.
    """
    row.crashes, row.counted_from = 0, row.last_seq


def add_message(
    row: Dialog,
    *,
    role: Role,
    origin: MessageOrigin,
    content: str,
    parent: Message | None,
    parts: dict[str, Any] | None = None,
    cut_short: bool = False,
    course: Course | None = None,
) -> Message:
    """Append a message under `parent` and make it the current leaf. Changes `row`, which the caller saves.

    A user message opens the next turn of its branch; every other message, and one that asks to go on with a cut
    answer, belongs to its parent's turn. It stands in its parent's course, unless it opens another.
    """
    row.last_seq += 1
    turn = parent.turn if parent else 0
    message = new(
        Message,
        dialog=row,
        course=course or (parent.course if parent else newest_course(row)),
        seq=row.last_seq,
        parent=parent,
        turn=turn + 1 if role == Role.USER and origin != MessageOrigin.CONTINUATION else turn,
        role=role,
        origin=origin,
        content=content,
        parts=parts or {},
        cut_short=cut_short,
    )
    insert(message)
    insert(new(SearchText, message=message, words=index_words(content)))
    row.current_leaf = message
    return message


def current_course(row: Dialog) -> Course:
    """The course of the branch that is shown: an earlier one where a person went back before a later one began."""
    return row.current_leaf.course if row.current_leaf else newest_course(row)


def newest_course(row: Dialog) -> Course:
    return Course.objects.filter(dialog=row).latest("number")


def newest_leaf(message: Message) -> Message:
    """The end of the newest branch below a message; the message itself when nothing follows it."""
    while child := message.children.order_by("-seq").first():
        message = child
    return message


def close_answer(row: Dialog, *fields: str) -> None:
    """No answer is wanted any more. Where a new try brought none, the earlier answer shows again."""
    # The dialog's newest message has no message below it.
    if row.current_leaf is not None and row.current_leaf.seq < row.last_seq:
        row.current_leaf = newest_leaf(row.current_leaf)
    row.answer_due = False
    row.active_at = timezone.now()
    save(row, "answer_due", "active_at", "current_leaf", "last_seq", *fields)


def clean_text(content: str) -> str:
    """The text as it is stored, with one kind of line end."""
    text = storable(content).replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise DialogError(_("Write something first: the message is empty."))
    limit = settings.DOMINDS_MAX_MESSAGE_CHARS
    if len(text) > limit:
        raise DialogError(
            ngettext(
                "The message is longer than %(limit)s character.",
                "The message is longer than %(limit)s characters. Send it in parts.",
                limit,
            )
            % {"limit": f"{limit:,}"}
        )
    return text


# Keys of a generation's manifest with the hash of a blob: texts that were sent (exported in files), and further ones
# (not exported): the record of the request's beginning, and the client's own message in front.
SENT_KEYS = ("instructions", "taskdoc", "reminders", "tools", "notice", "urge", "task", "changed")
BLOB_KEYS = (*SENT_KEYS, "begins", "own")


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
    # Last: a run that is logged after this finds its dialog gone.
    transaction.on_commit(lambda: reward_log.forget(dialog_id))
    changed_on_commit(dialog_id)


def _blobs_of(generations: QuerySet[Generation]) -> set[str]:
    """The hashes in their manifests, selected by the database, since manifests also hold long lists of ids."""
    manifests = generations.values_list(*(f"manifest__{key}" for key in BLOB_KEYS))
    return {sha256 for hashes in manifests.iterator() for sha256 in hashes if sha256}


def _images_of(messages: QuerySet[Message]) -> set[str]:
    """The hashes of what clients attached to these messages."""
    return set(hashes_in(messages.filter(parts__has_key="wire").values_list("parts", flat=True).iterator()))


def _drop_unused(blobs: set[str]) -> None:
    """Locks the blobs first: a generation that begins with one at this moment waits, and stores it again."""
    locked = Blob.objects.select_for_update().filter(pk__in=blobs).order_by("pk")
    mine = {blob.pk for blob in locked.only("pk")}
    used = _blobs_of(Generation.objects.all()) | _images_of(Message.objects.all()) if mine else set()
    Blob.objects.filter(pk__in=mine - used).delete()
