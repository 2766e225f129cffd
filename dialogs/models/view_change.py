"""Each time that what the model sees of a course became another view: applied, undone, redone. Only ever added to."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class ViewChange(models.Model):
    class Why(models.TextChoices):
        APPLIED = "applied", _("applied")
        UNDONE = "undone", _("undone")
        REDONE = "redone", _("redone")

    course = models.ForeignKey("dialogs.Course", on_delete=models.CASCADE, related_name="view_changes")
    before = models.ForeignKey("health.CompactionRun", on_delete=models.SET_NULL, null=True, related_name="+")
    after = models.ForeignKey("health.CompactionRun", on_delete=models.SET_NULL, null=True, related_name="+")
    why = models.CharField(max_length=20, choices=Why)
    # Null: the driver.
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    changed_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.course_id}: {self.why}"
