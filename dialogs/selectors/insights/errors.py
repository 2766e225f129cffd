"""How far the estimates for an LLM missed what its server reported, of the newest twenty reports."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from dialogs.models import LLM
from health.models import LlmCalibration
from health.tokens.calibration import Calibration


@dataclass(frozen=True, kw_only=True)
class Missed:
    """Per cent of what was reported: on average whichever way, and with its sign (below nothing: too low)."""

    error: float
    bias: float
    reports: int

    @property
    def signed(self) -> str:
        """With a true minus."""
        return f"{self.bias:+.1f}".replace("-", "−")


def missed_by(llms: Collection[LLM]) -> dict[int, Missed]:
    """By the LLM's key; one without reports is left out."""
    found = {row.llm_id: row.known for row in LlmCalibration.objects.filter(llm__in=llms)}
    return {
        key: Missed(error=known.error_percent, bias=known.bias_percent, reports=len(known.samples))
        for key, known in found.items()
        if isinstance(known, Calibration)
    }
