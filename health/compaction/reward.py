"""What a run was worth: a reward from -2 to 2, by success, coherence, tokens, priorities and time."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

from health.compaction.choosing.scoring import coherence, query_of
from health.compaction.terms.outcome import (
    BreakingOutcome,
    CompactionOutcome,
    Status,
    Step,
)
from health.compaction.terms.ports import Need
from health.compaction.terms.units import WRITTEN, ContextState, Priority, Unit


def coherence_of(before: ContextState, after: ContextState) -> Generator[Need, Any, tuple[float | None, float]]:
    """Coherence of the result, and its difference to the original's own; None and 0 where it cannot be told."""
    query = query_of(before)
    try:
        now = yield from coherence(before.units, after.units, query=query)
        then = yield from coherence(before.units, before.units, query=query)
    except Exception:
        return None, 0.0
    return now, now - then


def rewarded(
    outcome: CompactionOutcome, before: ContextState, steps: Sequence[Step], *, coherence_delta: float
) -> CompactionOutcome:
    """The outcome with its steps, and its reward for the engine's time in them all. What was skipped earned nothing.

    How long a model took to answer says nothing of a chain: it depends on the machine that the model runs on.
    """
    outcome = replace(outcome, steps=tuple(steps))
    if outcome.status is Status.SKIPPED:
        return outcome
    run = BreakingOutcome(
        success=outcome.status is Status.APPLIED,
        used_recovery=outcome.recovered is not None,
        coherence_delta=coherence_delta,
        tokens_reduced=outcome.estimated_tokens_before - outcome.estimated_tokens_after,
        time_ms=sum(step.ms - step.waited_ms for step in steps),
        priority_preserved=priority_preserved(before.units, outcome.state.units),
        original_tokens=outcome.estimated_tokens_before,
    )
    return replace(outcome, breaking=run, reward=reward(run))


def counted_from(outcome: CompactionOutcome, tokens_before: int) -> CompactionOutcome:
    """The outcome with its reward for what the model was sent before, where a run chose from more than that."""
    if outcome.breaking is None:
        return outcome
    reduced = tokens_before - outcome.estimated_tokens_after
    run = replace(outcome.breaking, tokens_reduced=reduced, original_tokens=tokens_before)
    return replace(outcome, breaking=run, reward=reward(run))


SLOW_MS = 500


LEAST = -2.0


MOST = 2.0


def reward(run: BreakingOutcome) -> float:
    """Success earns by coherence, tokens and priorities; recovery and slowness cost."""
    earned = -1.0
    if run.success:
        share = run.tokens_reduced / run.original_tokens if run.original_tokens else 0.0
        earned = 1.0 + run.coherence_delta * 0.5 + share * 0.3 + run.priority_preserved * 0.2
    if run.used_recovery:
        earned -= 0.7
    if run.time_ms > SLOW_MS:
        earned -= run.time_ms / 1000 * 0.1
    return max(LEAST, min(MOST, earned))


def priority_preserved(before: Sequence[Unit], after: Sequence[Unit]) -> float:
    """The share of P1 messages that stand word for word, 1 where there are none. Handovers do not count."""
    standing = {unit.id: unit.content for unit in after}
    first = [unit for unit in before if unit.priority is Priority.P1 and unit.kind not in WRITTEN]
    return sum(standing.get(unit.id) == unit.content for unit in first) / len(first) if first else 1.0
