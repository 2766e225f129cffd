"""The tables of the health app. They point at the dialogs' tables by string only."""

from __future__ import annotations

from health.models.calibration import CountedText, LlmCalibration
from health.models.compaction import GRADES, CompactionRun, ContextSettings, PreparedPruning, SettingsChange
from health.models.learning import CleanupTask, ContextEvent, Proposal, WhatIf
from health.models.reading import HealthReading, LlmPrice

__all__ = [
    "GRADES",
    "CleanupTask",
    "CompactionRun",
    "ContextEvent",
    "ContextSettings",
    "CountedText",
    "HealthReading",
    "LlmCalibration",
    "LlmPrice",
    "PreparedPruning",
    "Proposal",
    "SettingsChange",
    "WhatIf",
]
