"""From reported prompt tokens to a level: thresholds, their defaults, their edges."""

from __future__ import annotations

import pytest

from health.monitor.levels import (
    Configured,
    Level,
    UnknownReason,
    Usage,
    UsageUnavailable,
    context_window,
    read,
    thresholds,
    usable,
)


def usage(prompt_tokens: int, *, completion_tokens: int = 10) -> Usage:
    return Usage(
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        total_tokens=prompt_tokens + completion_tokens,
    )


def window(tokens: int, **ceilings: int) -> Configured:
    return Configured(context_length=tokens, **ceilings)


@pytest.mark.parametrize(
    ("tokens", "prompt_tokens", "level"),
    [
        (200_000, 1, Level.HEALTHY),
        (200_000, 100_000, Level.HEALTHY),  # at the soft ceiling
        (200_000, 100_001, Level.CAUTION),  # one above it
        (200_000, 180_000, Level.CAUTION),  # at the critical ceiling
        (200_000, 180_001, Level.CRITICAL),  # one above it
        (200_000, 230_000, Level.CRITICAL),  # over the window itself
        (32_768, 29_491, Level.HEALTHY),  # floor(0.9 * 32768) = 29491
        (32_768, 29_492, Level.CRITICAL),  # critical wins although far below 100,000
        (32_768, 30_000, Level.CRITICAL),
    ],
)
def test_the_level_compares_prompt_tokens_with_the_default_ceilings(
    tokens: int, prompt_tokens: int, level: Level
) -> None:
    assert read(usage(prompt_tokens), window(tokens)).level is level


@pytest.mark.parametrize(
    ("prompt_tokens", "level"),
    [(24_000, Level.HEALTHY), (24_576, Level.HEALTHY), (24_577, Level.CAUTION), (29_492, Level.CRITICAL)],
)
def test_an_explicit_optimal_ceiling_makes_room_for_caution_in_a_small_window(prompt_tokens: int, level: Level) -> None:
    assert read(usage(prompt_tokens), window(32_768, optimal_max_tokens=24_576)).level is level


def test_a_long_answer_does_not_change_the_level() -> None:
    assert read(usage(10, completion_tokens=300_000), window(200_000)).level is Level.HEALTHY


@pytest.mark.parametrize(
    ("tokens", "critical"),
    [(272_000, 244_800), (32_769, 29_492), (200_000, 180_000), (2_048, 1_843), (1, 1)],
)
def test_the_critical_ceiling_defaults_to_nine_tenths_of_the_window(tokens: int, critical: int) -> None:
    limits = thresholds(window(tokens), window=tokens)

    assert (limits.critical_max_tokens, limits.critical_configured) == (critical, False)


@pytest.mark.parametrize(
    ("ceilings", "used", "configured"),
    [
        ({}, (100_000, 244_800, 10), False),  # the defaults
        (
            {"optimal_max_tokens": 60_000, "critical_max_tokens": 210_000, "caution_cadence": 3},
            (60_000, 210_000, 3),
            True,
        ),
    ],
)
def test_configured_ceilings_are_used_as_they_are_and_have_defaults_as_the_cadence_has(
    ceilings: dict[str, int], used: tuple[int, int, int], configured: bool
) -> None:
    limits = thresholds(window(272_000, **ceilings), window=272_000)

    assert (limits.optimal_max_tokens, limits.critical_max_tokens, limits.caution_cadence) == used
    assert (limits.optimal_configured, limits.critical_configured) == (configured, configured)


@pytest.mark.parametrize(
    ("configured", "tokens"),
    [
        (Configured(context_length=8_192, input_length=6_000), 8_192),  # context_length wins
        (Configured(input_length=6_000), 6_000),  # the conservative fallback
        (Configured(context_length=0, input_length=6_000), 6_000),  # zero is not a window
        (Configured(), None),
    ],
)
def test_the_window_is_the_context_length_else_the_input_length(configured: Configured, tokens: int | None) -> None:
    assert context_window(configured) == tokens


@pytest.mark.parametrize(
    ("number", "tokens"),
    [
        (10, 10),
        (10.9, 10),  # fractions are floored
        (1, 1),
        (0, None),
        (0.5, None),  # would floor to zero
        (-5, None),
        (float("nan"), None),
        (float("inf"), None),
        ("60000", None),
        (True, None),
        (None, None),
    ],
)
def test_only_a_number_above_zero_counts_as_configured(number: object, tokens: int | None) -> None:
    assert usable(number) == tokens


def test_a_reading_carries_both_ratios() -> None:
    reading = read(usage(50_000), window(200_000))

    assert (reading.hard_util, reading.optimal_util) == (0.25, 0.5)


def test_without_usage_the_level_is_unknown_and_there_is_no_number() -> None:
    reading = read(UsageUnavailable("no usage in the stream"), window(200_000))

    assert (reading.level, reading.reason) == (Level.UNKNOWN, UnknownReason.USAGE_UNAVAILABLE)
    assert reading.prompt_tokens is reading.context_window is reading.hard_util is reading.optimal_util is None
    assert reading.thresholds is None


def test_without_a_window_the_level_is_unknown_but_the_reported_tokens_stay() -> None:
    reading = read(usage(777), Configured(optimal_max_tokens=500))

    assert (reading.level, reading.reason) == (Level.UNKNOWN, UnknownReason.LIMIT_UNAVAILABLE)
    assert (reading.prompt_tokens, reading.hard_util) == (777, None)
