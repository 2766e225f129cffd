"""A reminder is a short note that the agent keeps."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class Author(models.TextChoices):
    AGENT = "agent", _("agent")
    PERSON = "person", _("person")


class Reminder(models.Model):
    """A note that the agent keeps across courses. A removed one is hidden; a person can restore it."""

    dialog = models.ForeignKey("dialogs.Dialog", on_delete=models.CASCADE, related_name="reminders")
    # The name by which the agent refers to it: never used twice in a dialog.
    number = models.PositiveIntegerField()
    content = models.TextField()
    # The reminder's place in the list. Gaps are allowed.
    position = models.PositiveIntegerField()
    author = models.CharField(max_length=20, choices=Author)
    # The course in which it was last written.
    course = models.ForeignKey("dialogs.Course", on_delete=models.SET_NULL, null=True, related_name="reminders")
    # Written by the agent while caution or critical lasted: part of its continuation package.
    is_continuation = models.BooleanField(default=False)
    # Raised by every change of the text, so that two editors notice each other.
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    removed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("position", "number")
        constraints = [models.UniqueConstraint(fields=["dialog", "number"], name="reminder_number_once")]

    def __str__(self) -> str:
        return f"{self.dialog_id} reminder {self.number}"
