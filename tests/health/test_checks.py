"""What is told of a model's limits. What an admin wrote is never changed by it."""

from __future__ import annotations

import pytest

from health.checks import limit_warnings
from health.monitor.levels import Configured


@pytest.mark.parametrize(
    ("configured", "ids"),
    [
        (Configured(context_length=200_000), []),
        (Configured(context_length=111_113), []),  # nine tenths is 100,001: just above the default
        (Configured(context_length=111_112), ["health.W001"]),
        (Configured(context_length=32_768), ["health.W001"]),
        (Configured(context_length=32_768, optimal_max_tokens=24_576), []),
        (Configured(input_length=200_000), []),
        (Configured(context_length=10, optimal_max_tokens=5, critical_max_tokens=11), ["health.W002"]),
        (Configured(context_length=10, optimal_max_tokens=20, critical_max_tokens=11), ["health.W002", "health.W001"]),
        (Configured(), ["health.W003"]),
        (Configured(optimal_max_tokens=5, critical_max_tokens=3), ["health.W003"]),
    ],
)
def test_odd_limits_are_named(configured: Configured, ids: list[str]) -> None:
    found = limit_warnings("demo/tiny", configured)

    assert [warning.id for warning in found] == ids
    assert all("demo/tiny" in warning.msg and warning.hint for warning in found)
