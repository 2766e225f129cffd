"""What a person does to a dialog as a whole. Erasing is in `transcript/writes/dialog_row.py`."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from dialogs.common.errors import DialogError
from dialogs.common.schedule import drive_on_commit
from dialogs.common.text import storable
from dialogs.models import LLM, Agent, Course, Dialog
from dialogs.models.dialog import OwnTools, WorkLanguage
from dialogs.models.llm import Compaction
from dialogs.transcript.writes.dialog_row import current_course, lock, save, written_here
from dialogs.turns.writes.remediation import lift

TITLE_LIMIT = 200


@transaction.atomic
def create_dialog(*, owner: User, agent: Agent) -> Dialog:
    """Create a dialog; its work language is the owner's present one."""
    language = get_language() or ""
    dialog = Dialog.objects.create(
        owner=owner,
        agent=agent,
        llm=agent.llm,
        active_at=timezone.now(),
        work_language=language if language in WorkLanguage.values else WorkLanguage.ENGLISH,
    )
    Course.objects.create(dialog=dialog, number=1)
    return dialog


@transaction.atomic
def rename_dialog(*, dialog: Dialog, title: str) -> Dialog:
    name = " ".join(storable(title.replace("\0", "")).split())[:TITLE_LIMIT]
    if not name:
        raise DialogError(_("A dialog needs a name."))
    return _changed(lock(dialog), title=name, titled_by_person=True)


@transaction.atomic
def change_llm(*, dialog: Dialog, llm: LLM) -> Dialog:
    """Let another LLM answer from the next message on. Past readings stay what they were."""
    row = written_here(lock(dialog))
    if row.llm_id != llm.pk:
        lift(row, current_course(row))
    row.llm, row.llm_after = llm, None
    save(row, "llm", "llm_after")
    return row


@transaction.atomic
def set_work_language(*, dialog: Dialog, language: str) -> Dialog:
    """Speak this language to the agent from the next prompt on."""
    return _changed(written_here(lock(dialog)), work_language=WorkLanguage(language))


@transaction.atomic
def set_compaction(*, dialog: Dialog, compaction: str) -> Dialog:
    """Whether this dialog is compacted by itself from the next request on; also of one that a client drives."""
    return _changed(lock(dialog), compaction=Compaction(compaction))


@transaction.atomic
def set_own_tools(*, dialog: Dialog, own_tools: str) -> Dialog:
    """Which of Dominds' own tools are offered from the next request on; also in one that a client drives."""
    return _changed(lock(dialog), own_tools=OwnTools(own_tools))


@transaction.atomic
def archive_dialog(*, dialog: Dialog) -> Dialog:
    return _changed(lock(dialog), archived_at=timezone.now())


@transaction.atomic
def unarchive_dialog(*, dialog: Dialog) -> Dialog:
    return _changed(lock(dialog), archived_at=None)


@transaction.atomic
def trash_dialog(*, dialog: Dialog) -> Dialog:
    """Put a dialog in the trash, from which it can be restored for 30 days. A running answer is stopped."""
    row = lock(dialog)
    return _changed(row, trashed_at=timezone.now(), stop_requested=row.is_busy)


@transaction.atomic
def restore_dialog(*, dialog: Dialog) -> Dialog:
    """Take a dialog out of the trash. Waiting messages are answered then. A half-imported dialog stays there."""
    row = lock(dialog)
    if row.is_half_imported:
        raise DialogError(
            _(
                "This dialog is still being imported, or its import was broken off. Wait until it is there, else erase "
                "it. Import the file again if you need it."
            )
        )
    row.trashed_at = None
    row.wake_seq += 1
    save(row, "trashed_at", "wake_seq")
    drive_on_commit(row.pk)
    return row


def _changed(row: Dialog, **values: Any) -> Dialog:
    for name, value in values.items():
        setattr(row, name, value)
    save(row, *values)
    return row
