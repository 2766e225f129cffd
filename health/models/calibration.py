"""How far estimates for one LLM have been off, as `health.tokens.calibration` learns it."""

from __future__ import annotations

from django.db import models


class LlmCalibration(models.Model):
    llm = models.OneToOneField("dialogs.LLM", on_delete=models.CASCADE, primary_key=True, related_name="calibration")
    # [[estimated, foretold, reported]], the newest last, at most 20.
    samples = models.JSONField(default=list)
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"calibration of {self.llm_id}"
