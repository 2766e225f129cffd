"""What is told of a model's limits. What an admin wrote is never changed by it."""

from __future__ import annotations

import pytest

from dialogs.compaction.settings.checking import budget_warnings, limit_warnings, type_warnings
from health.compaction.config import ContextConfig
from health.limits import effective_limit
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


@pytest.mark.parametrize(
    ("limit", "is_p1", "window", "ids"),
    [
        (5000, False, 8192, []),
        (5000, False, None, []),
        (5000, False, 5000, []),
        (3499, False, 8192, ["health.W004"]),  # the floor of 3,500 holds
        (3400, True, 8192, []),  # a fifth more is above the floor
        (5000, False, 4096, ["health.W005"]),
        (5000, True, 5999, ["health.W005"]),  # so is a fifth more
        (2000, False, 2048, ["health.W004", "health.W005"]),
    ],
)
def test_odd_limits_of_an_agent_are_named(limit: int, is_p1: bool, window: int | None, ids: list[str]) -> None:
    uncapped = effective_limit(ContextConfig(), agent_limit=limit, is_p1=is_p1)

    found = budget_warnings("Helper", uncapped, window=window)

    assert [warning.id for warning in found] == ids
    assert all("Helper" in warning.msg and warning.hint for warning in found)


@pytest.mark.parametrize(("limit_type", "ids"), [("", []), ("gpt4", []), ("gpt5", ["health.W006"])])
def test_a_limit_type_that_nobody_knows_is_named(limit_type: str, ids: list[str]) -> None:
    assert [warning.id for warning in type_warnings("demo/tiny", limit_type, ContextConfig())] == ids
