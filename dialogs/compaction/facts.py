"""What is kept of an outcome: the columns of its run."""

from __future__ import annotations

from typing import Any

from dialogs.compaction.progress import badge
from dialogs.context.material import SYSTEM, Material
from dialogs.transcript import model_view
from health.compaction.laws.floor import oversized
from health.compaction.terms.outcome import CompactionOutcome, Status
from health.compaction.terms.reasons import Reason, Why, columns_of
from health.models import CompactionRun

# A view that is hardly smaller than the one that holds costs a prompt cache and brings nothing.
LEAST_GAIN = 0.1
# A person who wishes it gets less too: the guard would be at it again soon, a person is not.
LEAST_WISHED = LEAST_GAIN / 2
Made = CompactionRun.Status
# The run came to no less than the limit that it was given.
OVER_LIMIT = frozenset({Why.CANNOT_FREE_MORE, Why.P1_ALONE, Why.STILL_OVER, Why.NOT_UNDER})


def facts_of(outcome: CompactionOutcome, begun: Material, run: CompactionRun) -> tuple[str, dict[str, Any]]:
    """The status, and the columns by name."""
    common: dict[str, Any] = {
        "steps": [step.as_json() for step in outcome.steps],
        "estimated_before": begun.tokens_before,
        "messages_before": begun.messages_before,
        "counter": outcome.counter,
        "grade": str(outcome.grade),
        "embedder": outcome.embedder[:120],
        "reward": outcome.reward,
        "warnings": [
            one.as_json() if isinstance(one, Reason) else one
            for one in (*begun.shortened, *outcome.warnings, *_oversized(outcome, begun))
        ],
        "code": str(outcome.code or ""),
        **columns_of(outcome.why),
        "tokens_now": outcome.estimated_tokens_after,
    }
    if outcome.status is not Status.APPLIED:
        common["estimated_after"] = begun.tokens_before
        if _is_needless(outcome, run):
            return Made.SKIPPED, {**common, "code": "", **columns_of(_nothing_to_compact(begun, run))}
        return str(outcome.status), common
    gain = 1 - outcome.estimated_tokens_after / max(1, begun.tokens_before)
    is_reset = run.trigger == CompactionRun.Trigger.RESET
    is_wish = run.trigger == CompactionRun.Trigger.MANUAL
    least = LEAST_WISHED if is_wish else LEAST_GAIN
    if gain < least and outcome.state.limit >= begun.tokens_before and not is_reset:
        why = _nothing_to_compact(begun, run) if is_wish else Reason(Why.TOO_LITTLE_GAIN, {"share": max(0.0, gain)})
        # What is not applied earned nothing.
        skipped = {"estimated_after": begun.tokens_before, "reward": None, **columns_of(why)}
        return Made.SKIPPED, {**common, **skipped}
    return Made.APPLIED, {**common, **_applied(outcome, begun, run)}


def _oversized(outcome: CompactionOutcome, begun: Material) -> list[Reason]:
    """The reasons of tool results that were shortened as they are too large for the model's context."""
    before = {unit.id: unit.content for unit in begun.state.units}
    changed = {unit.id for unit in outcome.state.units if unit.content != before.get(unit.id)}
    return [why for name, why in oversized(begun.state).items() if name in changed]


def _reset_to(outcome: CompactionOutcome, begun: Material, run: CompactionRun) -> dict[str, Any]:
    """A reset is worked at as if the limit were what was there; what it is told beside is the real one. What is written
    down of a short chat may be more than that was."""
    if run.trigger != CompactionRun.Trigger.RESET:
        return {}
    is_less = outcome.estimated_tokens_after < begun.tokens_before
    sizes = {"tokens": outcome.estimated_tokens_after, "limit": run.limit_tokens}
    return columns_of(Reason(Why.REDUCED if is_less else Why.BEGUN_AFRESH, sizes))


def _is_needless(outcome: CompactionOutcome, run: CompactionRun) -> bool:
    """A person wished it, and nothing could be freed. Where no limit is known, none can have been missed."""
    if run.trigger != CompactionRun.Trigger.MANUAL:
        return False
    missed = outcome.status is Status.FAILED and outcome.why is not None and outcome.why.why in OVER_LIMIT
    return outcome.status is Status.SKIPPED or (missed and not _has_limit(run))


def _has_limit(run: CompactionRun) -> bool:
    """The largest prompt that a model has read is no limit of it."""
    return any(term["what"] != "accepted" for term in run.limit_trace)


def _nothing_to_compact(begun: Material, run: CompactionRun) -> Reason:
    if not _has_limit(run):
        return Reason(Why.NOTHING_IN_UNKNOWN, {"tokens": begun.tokens_before})
    return Reason(Why.NOTHING_TO_COMPACT, {"tokens": begun.tokens_before, "limit": begun.state.limit})


def _applied(outcome: CompactionOutcome, begun: Material, run: CompactionRun) -> dict[str, Any]:
    units = tuple(unit for unit in outcome.state.units if unit.id != SYSTEM)
    entries = model_view.entries_of(units, dict(begun.said))
    return {
        "view": model_view.dump(entries),
        "removed": _removed(begun, entries),
        "estimated_after": outcome.estimated_tokens_after,
        "messages_after": len(entries),
        "coherence": outcome.coherence,
        "recovered": str(outcome.recovered or ""),
        "coverage": [
            {"message": receipt.source_id, "extent": str(receipt.extent), "read": receipt.read, "total": receipt.total}
            for receipt in outcome.coverage
        ],
        "losses": [
            {"text": loss.text, "kind": loss.kind, "message": loss.source_id, "kept": loss.kept}
            for loss in outcome.losses
        ],
        "ledger": [{"text": entry.text, "kind": str(entry.kind)} for entry in outcome.ledger],
        **badge(run.dialog_id, units),
        **_reset_to(outcome, begun, run),
    }


def _removed(begun: Material, entries: tuple[model_view.Entry, ...]) -> list[int]:
    standing = {entry.message_id for entry in entries}
    return sorted(int(one) for one in begun.said if int(one) not in standing)
