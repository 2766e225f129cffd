"""Seed 4's reward of a run, from -2 to 2, for later learning. The formula is the seed's, its gaps are closed (DC31)."""

from __future__ import annotations

from collections.abc import Sequence

from health.compaction.outcome import BreakingOutcome
from health.compaction.units import WRITTEN, Priority, Unit

SLOW_MS = 500
LEAST, MOST = -2.0, 2.0


def reward(run: BreakingOutcome) -> float:
    """Success earns by coherence, tokens and priorities; recovery and slowness cost."""
    earned = _success(run) if run.success else -1.0
    if run.used_recovery:
        earned -= 0.7
    if run.time_ms > SLOW_MS:
        earned -= run.time_ms / 1000 * 0.1
    return max(LEAST, min(MOST, earned))


def _success(run: BreakingOutcome) -> float:
    share = run.tokens_reduced / run.original_tokens if run.original_tokens else 0.0
    return 1.0 + run.coherence_delta * 0.5 + share * 0.3 + run.priority_preserved * 0.2


def priority_preserved(before: Sequence[Unit], after: Sequence[Unit]) -> float:
    """The share of P1 messages that stand word for word, 1 where there are none. Handovers do not count."""
    standing = {unit.id: unit.content for unit in after}
    first = [unit for unit in before if unit.priority is Priority.P1 and unit.kind not in WRITTEN]
    return sum(standing.get(unit.id) == unit.content for unit in first) / len(first) if first else 1.0
