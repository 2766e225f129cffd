"""How far estimates for one LLM have been off, as `health.tokens.calibration` learns it."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class LlmCalibration(models.Model):
    llm = models.OneToOneField(
        "dialogs.LLM", verbose_name=_("LLM"), on_delete=models.CASCADE, primary_key=True, related_name="calibration"
    )
    # [[estimated, foretold, reported]], the newest last, at most 20.
    samples = models.JSONField(_("samples"), default=list)
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)

    class Meta:
        verbose_name = _("calibration of an LLM")
        verbose_name_plural = _("calibrations of LLMs")

    def __str__(self) -> str:
        return f"{self._meta.verbose_name} ({self.llm_id})"
