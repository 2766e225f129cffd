"""How full an estimate says the context is, and the marks at which a compaction begins, aims and is content.

Estimated only: the measured levels of `health.monitor` are another thing. Shares become whole tokens here, once.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from health.compaction.config import ContextConfig
from health.compaction.terms.units import ContextState

WARNING_SHARE = 0.8
SEVERE_SHARE = 0.9


class Pressure(StrEnum):
    NORMAL = "normal"
    HIGH = "high"  # compact before sending
    SEVERE = "severe"  # stop the stream, compact, restart
    OVERFLOW = "overflow"  # does not fit


@dataclass(frozen=True, kw_only=True)
class Targets:
    """Tokens: nothing happens up to `trigger`, a pass stops at `goal`, a run is over at `accept`."""

    trigger: int
    goal: int
    accept: int


def pressure(estimated_tokens: int, *, limit: int, warning_threshold: float = WARNING_SHARE) -> Pressure:
    """High above the threshold, severe from nine tenths on, overflow above the limit.

    Never more than normal where a run would do nothing, which is up to the trigger of `targets`.
    """
    if estimated_tokens > limit:
        return Pressure.OVERFLOW
    if estimated_tokens <= tokens(warning_threshold, limit):
        return Pressure.NORMAL
    return Pressure.SEVERE if estimated_tokens >= SEVERE_SHARE * limit else Pressure.HIGH


def targets(config: ContextConfig, *, limit: int) -> Targets:
    """A run that was content above its own trigger would begin again at once: so it never is."""
    trigger = tokens(config.warning_threshold, limit)
    accept = min(tokens(config.accept, limit), trigger)
    return Targets(trigger=trigger, goal=min(tokens(config.goal, limit), accept), accept=accept)


def is_acceptable(state: ContextState) -> bool:
    return state.estimated_tokens <= targets(state.config, limit=state.limit).accept


def at_goal(state: ContextState, ledger_tokens: int) -> bool:
    """The goal is the strategies'; the ledger may take what is left up to what is acceptable."""
    return (
        is_acceptable(state) and state.estimated_tokens - ledger_tokens <= targets(state.config, limit=state.limit).goal
    )


def tokens(share: float, limit: int) -> int:
    """The whole tokens in a share of the limit; 0.7 of 90 are 63, whatever floats say."""
    return int(share * limit + 1e-6)
