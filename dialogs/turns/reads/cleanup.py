"""Tasks to clean contexts up, for who may see them: the owner all of it, who is given one or gives them no contents."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet, UUIDField

from dialogs.llms.guard import may_be_guarded
from dialogs.models import Dialog
from dominds.prepared import prepared
from health.models import CleanupTask


def tasks_for(user: User) -> QuerySet[CleanupTask]:
    """Staff give tasks to people, so they see that there are some."""
    found = CleanupTask.objects.select_related("dialog__agent", "dialog__owner", "assignee", "closed_by")
    return found if user.is_staff else found.filter(Q(dialog__owner=user) | Q(assignee=user))


def has_open_task(dialog: Dialog) -> bool:
    """Whether a cleanup task of this dialog is open. Without a guard there is none."""
    return may_be_guarded(dialog) and bool(_open_tasks(dialog.pk))


@prepared(UUIDField())
def _open_tasks(dialog_id: Any) -> QuerySet[CleanupTask, Any]:
    return CleanupTask.objects.filter(dialog=dialog_id, closed_at=None).order_by().values_list("pk")[:1]


def assignable(task: CleanupTask) -> QuerySet[User]:
    """The people who can be given a task: the dialog's owner and staff."""
    people = User.objects.filter(Q(is_staff=True) | Q(pk=task.dialog.owner_id), is_active=True)
    return people.order_by("username")
