"""The log of what went wrong or nearly so with contexts, as codes. No text of a dialog stands here."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class ContextEvent(models.Model):
    class Code(models.TextChoices):
        TOKEN_LIMIT_EXCEEDED = "TOKEN_LIMIT_EXCEEDED", _("the limit was exceeded")
        BREAKER_FAILED = "BREAKER_FAILED", _("compaction failed")
        RECOVERY_TRIGGERED = "RECOVERY_TRIGGERED", _("recovery was needed")
        PRUNER_FAILED = "PRUNER_FAILED", _("the pruning agent failed")
        # A request was estimated above the warning threshold, and above the limit itself (an over-hit).
        WARNING = "WARNING", _("the context was nearly full")
        OVER_HIT = "OVER_HIT", _("the context was over its limit")
        RUN_SKIPPED = "RUN_SKIPPED", _("a compaction had nothing to gain")
        PROVIDER_OVERFLOW = "PROVIDER_OVERFLOW", _("the provider refused the prompt")
        # Of the model's window: what a refusal taught, and a prompt of which the server read only a part.
        WINDOW_LEARNED = "WINDOW_LEARNED", _("the window was learned")
        PROMPT_CUT = "PROMPT_CUT", _("the server read only a part of the prompt")
        LOOP_DETECTED = "LOOP_DETECTED", _("the agent went round in circles")
        SLICE_FAILED = "SLICE_FAILED", _("a turn was ended because Dominds failed three times")
        REPORTED = "REPORTED", _("a person reported it")

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
    # Whose context it was: kept beside the dialog, because by that it is found and counted.
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("owner"),
        on_delete=models.CASCADE,
        null=True,
        related_name="+",
        db_index=False,  # the indexes below begin with it
    )
    agent = models.ForeignKey(
        "dialogs.Agent", verbose_name=_("agent"), on_delete=models.SET_NULL, null=True, related_name="+"
    )
    llm = models.ForeignKey(
        "dialogs.LLM", verbose_name=_("LLM"), on_delete=models.SET_NULL, null=True, related_name="+"
    )
    estimated = models.PositiveIntegerField(_("estimated tokens"), null=True)
    limit = models.PositiveIntegerField(_("limit (tokens)"), null=True)
    # Numbers and names: {"estimated": …, "limit": …, "cause": …}.
    facts = models.JSONField(default=dict)
    happened_at = models.DateTimeField(_("happened at"), auto_now_add=True)

    class Meta:
        verbose_name = _("context event")
        verbose_name_plural = _("context events")
        ordering = ("-id",)
        indexes = [
            # Everybody's and a person's own, counted by agent and LLM without a look at the rows.
            models.Index(fields=["code", "happened_at", "agent", "llm"], name="context_event_counts"),
            models.Index(fields=["agent", "code", "happened_at"], name="context_event_agent"),
            models.Index(fields=["happened_at"], name="context_event_when"),
            # A person's own, the newest first.
            models.Index(fields=["owner", "-happened_at", "-id"], name="context_event_own"),
            models.Index(
                fields=["owner", "code", "-happened_at", "-id", "agent", "llm"], name="context_event_own_counts"
            ),
            models.Index(fields=["owner", "agent", "-happened_at", "-id"], name="context_event_own_agent"),
        ]

    def __str__(self) -> str:
        return f"{self.code} {self.happened_at:%Y-%m-%d %H:%M}"
