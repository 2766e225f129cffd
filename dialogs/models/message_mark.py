"""What a person said about a message: pinned, a priority, or brought back. Messages themselves never change."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class MessageMark(models.Model):
    class Priority(models.IntegerChoices):
        P1 = 1, "P1"
        P2 = 2, "P2"
        P3 = 3, "P3"

    message = models.OneToOneField("dialogs.Message", on_delete=models.CASCADE, related_name="mark")
    pinned = models.BooleanField(default=False)
    priority = models.PositiveSmallIntegerField(null=True, blank=True, choices=Priority)
    # What the priority is of: "To Do List", "Calendar", or a name of the person's own.
    area = models.CharField(_("area"), max_length=80, blank=True)
    marked_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"{self.message_id}: P{self.priority or '-'}{' pinned' if self.pinned else ''}"
