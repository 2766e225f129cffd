"""Readings, one for each generation: what the provider's usage says about the context; and the price of prompt tokens.

Refers to the dialogs' tables by string: this app never imports that one.
"""

from __future__ import annotations

from django.core.validators import MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _


class HealthReading(models.Model):
    class Level(models.TextChoices):
        HEALTHY = "healthy", _("healthy")
        CAUTION = "caution", _("caution")
        CRITICAL = "critical", _("critical")
        UNKNOWN = "unknown", _("unknown")

    class Reason(models.TextChoices):
        """Why a level is unknown."""

        USAGE_UNAVAILABLE = "usage_unavailable", _("The provider sent no usage.")
        LIMIT_UNAVAILABLE = "model_limit_unavailable", _("The model's context window is not known.")

    generation = models.OneToOneField(
        "dialogs.Generation",
        verbose_name=_("generation"),
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="reading",
    )
    level = models.CharField(_("level"), max_length=20, choices=Level)
    reason = models.CharField(_("reason"), max_length=40, choices=Reason, blank=True)
    prompt_tokens = models.PositiveIntegerField(_("prompt tokens"), null=True)
    context_window = models.PositiveIntegerField(_("context window"), null=True)
    window_source = models.CharField(_("where the window was read"), max_length=20, blank=True)
    optimal_max_tokens = models.PositiveIntegerField(_("caution above"), null=True)
    optimal_configured = models.BooleanField(_("caution is configured"), default=False)
    critical_max_tokens = models.PositiveIntegerField(_("critical above"), null=True)
    critical_configured = models.BooleanField(_("critical is configured"), default=False)
    hard_util = models.FloatField(_("share of the window"), null=True)
    optimal_util = models.FloatField(_("share of the caution ceiling"), null=True)
    read_at = models.DateTimeField(_("read at"), auto_now_add=True)

    class Meta:
        verbose_name = _("health reading")
        verbose_name_plural = _("health readings")
        ordering = ("generation_id",)

    def __str__(self) -> str:
        return f"{self.generation_id}: {self.level}"


class LlmPrice(models.Model):
    llm = models.OneToOneField(
        "dialogs.LLM", verbose_name=_("LLM"), on_delete=models.CASCADE, primary_key=True, related_name="price"
    )
    per_million = models.DecimalField(
        _("price of prompt tokens"),
        max_digits=12,
        decimal_places=4,
        validators=[MinValueValidator(0)],
        help_text=_("Of a million, in whatever currency you reckon."),
    )

    class Meta:
        verbose_name = _("price of an LLM")
        verbose_name_plural = _("prices of LLMs")

    def __str__(self) -> str:
        return str(self.llm)
