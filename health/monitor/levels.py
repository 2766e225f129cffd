"""Derives a level from reported usage, the only place that judges health (all comparisons strict); formats shares."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from enum import StrEnum


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Token counts as reported. `prompt_tokens` is the whole input, cached tokens included."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    cached_tokens: int | None = None


@dataclass(frozen=True)
class UsageUnavailable:
    """The provider reported no usable usage. `why` is for people, for example "no usage in the stream"."""

    why: str = ""


DEFAULT_OPTIMAL_MAX_TOKENS = 100_000
DEFAULT_CAUTION_CADENCE = 10
CRITICAL_TENTHS = 9


class Level(StrEnum):
    HEALTHY = "healthy"
    CAUTION = "caution"
    CRITICAL = "critical"
    UNKNOWN = "unknown"


class UnknownReason(StrEnum):
    """Why a level is unknown."""

    NONE = ""
    USAGE_UNAVAILABLE = "usage_unavailable"
    LIMIT_UNAVAILABLE = "model_limit_unavailable"


@dataclass(frozen=True, kw_only=True)
class Configured:
    """The numbers that are configured for a model, in tokens or generations, or None."""

    context_length: float | None = None
    input_length: float | None = None
    optimal_max_tokens: float | None = None
    critical_max_tokens: float | None = None
    caution_cadence: float | None = None


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """The ceilings in force for one context window, and whether each was configured."""

    optimal_max_tokens: int
    optimal_configured: bool
    critical_max_tokens: int
    critical_configured: bool
    caution_cadence: int


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The health of one generation. All numbers are None if the provider reported no usage."""

    level: Level
    reason: UnknownReason = UnknownReason.NONE
    prompt_tokens: int | None = None
    context_window: int | None = None
    thresholds: Thresholds | None = None
    hard_util: float | None = None
    optimal_util: float | None = None


def usable(number: object) -> int | None:
    """A configured number as a positive integer; anything else counts as not configured."""
    if isinstance(number, bool) or not isinstance(number, int | float):
        return None
    # The comparison is false for NaN, and infinity has no floor.
    return int(number) if 1 <= number < float("inf") else None


def context_window(configured: Configured) -> int | None:
    """`context_length`, else `input_length`, else unknown. Never inferred from a model's name."""
    return usable(configured.context_length) or usable(configured.input_length)


def thresholds(configured: Configured, *, window: int) -> Thresholds:
    """The effective ceilings: as configured, else 100,000 and nine tenths of the window."""
    optimal = usable(configured.optimal_max_tokens)
    critical = usable(configured.critical_max_tokens)
    return Thresholds(
        optimal_max_tokens=optimal or DEFAULT_OPTIMAL_MAX_TOKENS,
        optimal_configured=optimal is not None,
        critical_max_tokens=critical or max(1, window * CRITICAL_TENTHS // 10),
        critical_configured=critical is not None,
        caution_cadence=caution_cadence(configured),
    )


def caution_cadence(configured: Configured) -> int:
    """Generations between two prompts while caution lasts."""
    return usable(configured.caution_cadence) or DEFAULT_CAUTION_CADENCE


def level(prompt_tokens: int, limits: Thresholds) -> Level:
    """Critical is tested first: in a small window its ceiling can lie below the optimal one."""
    if prompt_tokens > limits.critical_max_tokens:
        return Level.CRITICAL
    if prompt_tokens > limits.optimal_max_tokens:
        return Level.CAUTION
    return Level.HEALTHY


def read(usage: Usage | UsageUnavailable, configured: Configured) -> Reading:
    """The reading of one generation. Without usage it holds no number at all."""
    if isinstance(usage, UsageUnavailable):
        return Reading(level=Level.UNKNOWN, reason=UnknownReason.USAGE_UNAVAILABLE)
    window = context_window(configured)
    if window is None:
        return Reading(level=Level.UNKNOWN, reason=UnknownReason.LIMIT_UNAVAILABLE, prompt_tokens=usage.prompt_tokens)
    limits = thresholds(configured, window=window)
    return Reading(
        level=level(usage.prompt_tokens, limits),
        prompt_tokens=usage.prompt_tokens,
        context_window=window,
        thresholds=limits,
        hard_util=usage.prompt_tokens / window,
        optimal_util=usage.prompt_tokens / limits.optimal_max_tokens,
    )


def percent_text(share: float) -> str:
    """0.25 -> "25 %", 0.0942 -> "9.4 %", 1.07 -> "107 %"."""
    percent = Decimal(str(share)) * 100
    tenths = percent.quantize(Decimal("0.1"), ROUND_HALF_UP)
    if tenths < 10:
        return f"{tenths} %"
    return f"{percent.quantize(Decimal(1), ROUND_HALF_UP)} %"


def clamped(share: float) -> float:
    """The share limited to 0 to 1, for a drawing."""
    return min(1.0, max(0.0, share))
