"""Patterns over events: which agent had what too often in a day."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

WINDOW = timedelta(hours=24)
LEAST_COHERENCE = 0.65
TOKEN_LIMIT_EXCEEDED, OVER_HIT = "TOKEN_LIMIT_EXCEEDED", "OVER_HIT"
RECOVERY_TRIGGERED, COHERENCE_DROP = "RECOVERY_TRIGGERED", "COHERENCE_DROP"
PROVIDER_OVERFLOW, BREAKER_FAILED = "PROVIDER_OVERFLOW", "BREAKER_FAILED"
# So often within the window. The over-hits are ours: a guard that works lets an over-hit become no error. So are the
# refusals of providers, and compactions for which too much must stay.
LEAST: Mapping[str, int] = {
    TOKEN_LIMIT_EXCEEDED: 3,
    RECOVERY_TRIGGERED: 4,
    COHERENCE_DROP: 3,
    OVER_HIT: 3,
    PROVIDER_OVERFLOW: 3,
    BREAKER_FAILED: 3,
}


@dataclass(frozen=True, kw_only=True)
class Happened:
    """An event by its code; COHERENCE_DROP is a compaction whose coherence was below `LEAST_COHERENCE`."""

    code: str
    agent_id: int
    at: datetime


@dataclass(frozen=True, kw_only=True)
class Finding:
    """`count` events of one code, of one agent, within the window."""

    code: str
    agent_id: int
    count: int


def findings(happened: Iterable[Happened], *, now: datetime) -> tuple[Finding, ...]:
    """The most frequent first. What is older than the window, or lies ahead, counts for nothing."""
    return frequent(Counter((one.agent_id, one.code) for one in happened if now - WINDOW < one.at <= now))


def frequent(counts: Counter[tuple[int, str]]) -> tuple[Finding, ...]:
    """The events that are frequent enough to tell, the most frequent first. `counts` is by agent and code."""
    return tuple(
        Finding(code=code, agent_id=agent_id, count=count)
        for (agent_id, code), count in counts.most_common()
        if count >= LEAST.get(code, count + 1)
    )
