"""The record of remediation: each prompt that was inserted or carried by a typed message, and what came of it."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class RemediationPrompt(models.Model):
    class Level(models.TextChoices):
        CAUTION = "caution", _("caution")
        CRITICAL = "critical", _("critical")

    dialog = models.ForeignKey("dialogs.Dialog", on_delete=models.CASCADE, related_name="remediation_prompts")
    course = models.ForeignKey("dialogs.Course", on_delete=models.CASCADE, related_name="remediation_prompts")
    # The inserted message, or the typed one that carries the notice.
    message = models.OneToOneField("dialogs.Message", on_delete=models.CASCADE, related_name="remediation_prompt")
    level = models.CharField(max_length=20, choices=Level)
    # How many more prompts follow before an automatic new course; null in caution.
    remaining = models.PositiveSmallIntegerField(null=True, blank=True)
    # What was added to a typed message when it was sent; empty for an inserted message, which is all prompt.
    notice = models.TextField(blank=True)
    # Did the agent write a reminder before the next prompt or the end of its answer? Null: not yet known.
    curated = models.BooleanField(null=True, default=None)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.level} prompt on message {self.message_id}"
