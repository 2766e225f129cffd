"""The account of a run: what was read, what was lost, how coherent the result is, and what the run was worth."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

from health.compaction.coverage import altered, receipts, removed_ids
from health.compaction.losses import LossView
from health.compaction.outcome import BreakingOutcome, Code, CompactionOutcome, Status, Step
from health.compaction.ports import Attempt, Need
from health.compaction.reasons import Reason, Why
from health.compaction.reward import priority_preserved, reward
from health.compaction.scoring import coherence, query_of
from health.compaction.units import ContextState
from health.compaction.weave import without_ledger


def applied(untouched: CompactionOutcome, best: Attempt) -> CompactionOutcome:
    """The outcome of what is taken. The ledger is carried on, so it neither leaves nor reads."""
    before, after = untouched.state, untouched.state.having(best.state.units)
    old, new = without_ledger(before).units, without_ledger(after).units
    return replace(
        untouched,
        status=Status.APPLIED,
        state=after,
        estimated_tokens_after=after.estimated_tokens,
        coverage=receipts(old, new, best.reads),
        losses=LossView(altered(old, new), after.units),
        removed_ids=removed_ids(old, new),
        why=Reason(Why.REDUCED, {"tokens": after.estimated_tokens, "limit": after.limit}),
        gave_way=best.touched,
        warnings=(*untouched.warnings, *(step.why for step in best.gave_way)),
    )


def failed(untouched: CompactionOutcome, code: Code, why: Reason) -> CompactionOutcome:
    return replace(untouched, status=Status.FAILED, code=code, why=why)


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
    """The outcome with its steps, and its reward for the time of them all. What was skipped earned nothing."""
    outcome = replace(outcome, steps=tuple(steps))
    if outcome.status is Status.SKIPPED:
        return outcome
    run = BreakingOutcome(
        success=outcome.status is Status.APPLIED,
        used_recovery=outcome.recovered is not None,
        coherence_delta=coherence_delta,
        tokens_reduced=outcome.estimated_tokens_before - outcome.estimated_tokens_after,
        time_ms=sum(step.ms for step in steps),
        priority_preserved=priority_preserved(before.units, outcome.state.units),
        original_tokens=outcome.estimated_tokens_before,
    )
    return replace(outcome, breaking=run, reward=reward(run))
