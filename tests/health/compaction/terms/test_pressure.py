"""From an estimate to a pressure, and the marks of a run in whole tokens."""

from __future__ import annotations

import pytest

from health.compaction.config import ContextConfig
from health.compaction.terms.pressure import Pressure, Targets, pressure, targets, tokens


@pytest.mark.parametrize(
    ("estimated", "expected"),
    [
        (0, Pressure.NORMAL),
        (8000, Pressure.NORMAL),  # at the threshold
        (8001, Pressure.HIGH),
        (8999, Pressure.HIGH),
        (9000, Pressure.SEVERE),
        (10_000, Pressure.SEVERE),  # full, but it fits
        (10_001, Pressure.OVERFLOW),
    ],
)
def test_pressure_rises_with_the_estimate(estimated: int, expected: Pressure) -> None:
    assert pressure(estimated, limit=10_000) is expected


def test_the_warning_threshold_can_be_set() -> None:
    assert pressure(7001, limit=10_000, warning_threshold=0.7) is Pressure.HIGH


@pytest.mark.parametrize("threshold", [0.5, 0.8, 0.9, 0.95, 1.0])
def test_there_is_pressure_exactly_where_a_run_would_begin(threshold: float) -> None:
    trigger = targets(ContextConfig(warning_threshold=threshold), limit=1000).trigger

    assert pressure(trigger, limit=1000, warning_threshold=threshold) is Pressure.NORMAL
    assert pressure(trigger + 1, limit=1000, warning_threshold=threshold) is not Pressure.NORMAL


def test_the_marks_of_the_default_configuration() -> None:
    assert targets(ContextConfig(), limit=5000) == Targets(trigger=4000, goal=3500, accept=4000)


def test_a_run_is_never_content_above_its_own_trigger() -> None:
    config = ContextConfig(warning_threshold=0.6, goal=0.9, accept=0.95)

    assert targets(config, limit=1000) == Targets(trigger=600, goal=600, accept=600)


def test_shares_are_not_disturbed_by_binary_fractions() -> None:
    assert tokens(0.7, 90) == 63  # 0.7 * 90 is 62.99999999999999
