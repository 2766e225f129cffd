"""The reminders of a dialog, as its agent sees them and as a person may bring them back."""

from __future__ import annotations

from uuid import UUID

from dialogs.models import Reminder

# An agent may remove thousands in a long life; the page that lists them is sent again and again.
SHOWN_REMOVED = 20


def kept_reminders(dialog_id: UUID) -> list[Reminder]:
    """In their order."""
    return list(Reminder.objects.filter(dialog=dialog_id, removed_at=None).select_related("course"))


def removed_reminders(dialog_id: UUID) -> list[Reminder]:
    """The newest removed ones, last removed first."""
    removed = Reminder.objects.filter(dialog=dialog_id, removed_at__isnull=False).select_related("course")
    return list(removed.order_by("-removed_at", "-number")[:SHOWN_REMOVED])
