"""Which dialogs a person sees, and their health. Ownership is decided here and nowhere else."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Exists, OuterRef, Q, QuerySet

from dialogs.models import Dialog, Generation, Message, ViewChange
from dialogs.selectors.path import stands_behind
from dialogs.selectors.providers import configured
from health.selectors import Meter, meter

Shelf = Literal["active", "clients", "archived", "trash"]
SHELVES: dict[Shelf, Q] = {
    "active": Q(archived_at=None, trashed_at=None),
    # Those of the active ones that clients drive.
    "clients": Q(archived_at=None, trashed_at=None, is_client_driven=True),
    "archived": Q(archived_at__isnull=False, trashed_at=None),
    "trash": Q(trashed_at__isnull=False),
}


def owned_dialog(*, user: User | AnonymousUser, dialog_id: UUID) -> Dialog:
    """The dialog, if it is this person's. Raises Dialog.DoesNotExist for a foreign one as for a missing one."""
    if not user.is_authenticated:
        raise Dialog.DoesNotExist
    return Dialog.objects.select_related("agent", "llm__provider", "current_leaf").get(pk=dialog_id, owner=user)


def list_dialogs(*, user: User, state: Shelf = "active", search: str = "") -> QuerySet[Dialog]:
    """This person's dialogs on one shelf, newest first; every word must occur in the title or in a message."""
    found = Dialog.objects.filter(SHELVES[state], owner=user).select_related("agent", "llm__provider")
    for word in search.replace("\0", "").split():
        said = Message.objects.filter(dialog=OuterRef("pk"), content__icontains=word)
        found = found.filter(Q(title__icontains=word) | Exists(said))
    return found.order_by("-active_at")


def dialog_meter(dialog: Dialog) -> Meter:
    return meter(
        dialog.pk,
        configured=configured(dialog.llm),
        window_source=dialog.llm.context_length_source,
        llm_name=dialog.llm.slug,
        left=_left(dialog),
    )


def _left(dialog: Dialog) -> str:
    """Why the newest reading is of another context than that of the next request; empty where it is of the same."""
    measured = Generation.objects.filter(dialog=dialog, reading__isnull=False).select_related("prompt_leaf__course")
    read, leaf = measured.order_by("-id").first(), dialog.current_leaf
    if read is None or leaf is None or read.prompt_leaf is None:
        return ""
    if leaf.course_id != read.course_id:
        return "new_course" if leaf.course.number > read.prompt_leaf.course.number else "other_branch"
    if not stands_behind(read.prompt_leaf, leaf):
        return "other_branch"
    since = read.finished_at or read.started_at
    return "compacted" if ViewChange.objects.filter(course_id=read.course_id, changed_at__gt=since).exists() else ""
