"""The log of what went wrong or nearly so with contexts, in seed 4's codes. No text of a dialog stands here."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class ContextEvent(models.Model):
    class Code(models.TextChoices):
        TOKEN_LIMIT_EXCEEDED = "TOKEN_LIMIT_EXCEEDED", _("the limit was exceeded")
        BREAKER_FAILED = "BREAKER_FAILED", _("compaction failed")
        RECOVERY_TRIGGERED = "RECOVERY_TRIGGERED", _("recovery was needed")
        PRUNER_FAILED = "PRUNER_FAILED", _("the pruning agent failed")

    code = models.CharField(_("code"), max_length=40, choices=Code)
    dialog = models.ForeignKey(
        "dialogs.Dialog", verbose_name=_("dialog"), on_delete=models.CASCADE, null=True, related_name="context_events"
    )
    run = models.ForeignKey(
        "health.CompactionRun",
        verbose_name=_("compaction run"),
        on_delete=models.SET_NULL,
        null=True,
        related_name="events",
    )
    # Numbers and names: {"estimated": …, "limit": …, "cause": …}.
    facts = models.JSONField(default=dict)
    happened_at = models.DateTimeField(_("happened at"), auto_now_add=True)

    class Meta:
        verbose_name = _("context event")
        verbose_name_plural = _("context events")
        ordering = ("-id",)
        indexes = [models.Index(fields=["code", "happened_at"], name="context_event_code")]

    def __str__(self) -> str:
        return f"{self.code} {self.happened_at:%Y-%m-%d %H:%M}"
