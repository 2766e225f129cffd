"""The tables of the health app, one file a noun. They point at the dialogs' tables by string only."""

from __future__ import annotations

from health.models.calibration import LlmCalibration
from health.models.compaction_run import CompactionRun
from health.models.counted_text import CountedText
from health.models.event import ContextEvent
from health.models.learning import CleanupTask, Proposal
from health.models.prepared_pruning import PreparedPruning
from health.models.price import LlmPrice
from health.models.reading import HealthReading
from health.models.settings import ContextSettings, SettingsChange
from health.models.what_if import WhatIf

__all__ = [
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
