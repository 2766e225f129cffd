"""The columns of a run: from its outcome; and while it runs its sizes, the highest priority in it, and the expected
result of a strategy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any
from uuid import UUID

from django.db.models import Q

from dialogs.compaction.pruning_agent import pruning_llm
from dialogs.context.material import SYSTEM, Material
from dialogs.models import LLM, Generation, MessageMark
from dialogs.transcript import model_view
from health.compaction.laws.floor import oversized
from health.compaction.strategies.prune_with_agent import AIM, offered_to
from health.compaction.strategies.summarize_old import old_part, to_summarise
from health.compaction.terms.outcome import CompactionOutcome, Status, Step
from health.compaction.terms.reasons import Reason, Why, columns_of
from health.compaction.terms.units import ContextState, Kind, Unit, total
from health.models import CompactionRun, LlmPrice

# A view that is hardly smaller than the one that holds costs a prompt cache and brings nothing.
LEAST_GAIN = 0.1
# A person's own compaction may free less: it does not run again by itself, as the guard's would.
LEAST_WISHED = LEAST_GAIN / 2
RunStatus = CompactionRun.Status
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
            return RunStatus.SKIPPED, {**common, "code": "", **columns_of(_nothing_to_compact(begun, run))}
        return str(outcome.status), common
    gain = 1 - outcome.estimated_tokens_after / max(1, begun.tokens_before)
    is_reset = run.trigger == CompactionRun.Trigger.RESET
    is_wish = run.trigger == CompactionRun.Trigger.MANUAL
    least = LEAST_WISHED if is_wish else LEAST_GAIN
    if gain < least and outcome.state.limit >= begun.tokens_before and not is_reset:
        why = _nothing_to_compact(begun, run) if is_wish else Reason(Why.TOO_LITTLE_GAIN, {"share": max(0.0, gain)})
        # A run that is not applied has no reward.
        skipped = {"estimated_after": begun.tokens_before, "reward": None, **columns_of(why)}
        return RunStatus.SKIPPED, {**common, **skipped}
    return RunStatus.APPLIED, {**common, **_applied(outcome, begun, run)}


def _oversized(outcome: CompactionOutcome, begun: Material) -> list[Reason]:
    """The reasons for tool results that were shortened because they are too large for the context."""
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
    """Did a person start it, and could nothing be freed? Where no limit is known, none can have been missed."""
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


SUMMARIZE_OLD, PRUNE_WITH_AGENT = "summarize_old", "prune_with_agent"
# The area of what is no task of anybody's, and only pinned.
PINNED = "pinned"
# Steps of the engine's that begin something: `phase` follows them. Strategies say by themselves when they begin.
BEGINNINGS = ("recovery", "handover")


def beginning(run: CompactionRun, begun: Material) -> dict[str, Any]:
    """The columns of a run that has been taken up."""
    return {
        "tokens_now": begun.tokens_before,
        "estimated_before": begun.tokens_before,
        "messages_before": begun.messages_before,
        **badge(run.dialog_id, begun.state.units),
    }


def badge(dialog_id: UUID, units: Iterable[Unit]) -> dict[str, Any]:
    """The highest priority that a person gave to what is in the context, also inside a summary. Pinned is P1."""
    present = (unit for unit in units if unit.kind is not Kind.PLACEHOLDER)
    ids = {int(one) for unit in present for one in unit.sources if one.isdigit()}
    marks = MessageMark.objects.filter(Q(priority__isnull=False) | Q(pinned=True), message__dialog=dialog_id)
    tags = [_tag(mark) for mark in marks if mark.message_id in ids]
    # One with an area says more than one without, and a tag more than a pin.
    priority, area = min(tags, key=lambda tag: (tag[0], tag[1] == PINNED, not tag[1]), default=(None, ""))
    return {"priority": priority, "priority_area": area}


def _tag(mark: MessageMark) -> tuple[int, str]:
    return (mark.priority, mark.area) if mark.priority else (1, PINNED)


def begins(phase: str) -> dict[str, str]:
    """The column that a reported step changes, if it begins something."""
    return {"phase": phase} if phase in BEGINNINGS else {}


def expected(name: str, state: ContextState, run: CompactionRun | None = None) -> list[dict[str, Any]]:
    """What a summary, or the pruning agent, is about to make of the old part, as a step that is not done.

    Of the agent also how long that may take and what it costs. Nothing of other strategies.
    """
    if name == SUMMARIZE_OLD:
        gone = total(to_summarise(state, old_part(state)))
        return [_running(name, gone, min(gone, state.config.summarize_old.summary_length))] if gone else []
    if run and name == PRUNE_WITH_AGENT and (cuts := offered_to(state.units)):
        offered = sum(total(cut.units) for cut in cuts)
        step = _running(name, state.estimated_tokens, round(AIM * state.estimated_tokens))
        return [step | expected_effort(pruning_llm(run.dialog), offered)]
    return []


def _running(name: str, before: int, after: int) -> dict[str, Any]:
    step = Step(phase=name, estimated_before=before, estimated_after=after, changed=False)
    return step.as_json() | {"is_running": True}


# Rates need so many answers; older ones may come from another machine.
LEAST_ANSWERS, RECENT = 3, 20
# So many prompt tokens that were not cached must have been read, or the first word tells nothing of reading.
LEAST_READ = 50
# What the pruning agent is told beside the messages; and of these, the share that its answer may have.
INSTRUCTIONS_TOKENS, ANSWER_SHARE, LEAST_ANSWER = 300, 0.1, 100
A_MILLION = 1_000_000


@dataclass(frozen=True)
class Rates:
    """Tokens a second, as the provider's reports and the clock have them."""

    prompt: float
    completion: float


def rates_of(llm: LLM) -> Rates | None:
    """The middle one of its recent answers; None where too few are known."""
    known = Generation.objects.filter(
        llm=llm,
        status=Generation.Status.FINISHED,
        prompt_tokens__isnull=False,
        completion_tokens__gt=1,
        first_token_at__isnull=False,
        finished_at__isnull=False,
    )
    rows = list(known.defer("manifest", "partial_text", "usage_raw").order_by("-pk")[:RECENT])
    prompt = _rate(
        (row.prompt_tokens - (row.cached_tokens or 0), row.started_at, row.first_token_at)
        for row in rows
        if row.prompt_tokens and row.prompt_tokens - (row.cached_tokens or 0) >= LEAST_READ
    )
    completion = _rate((row.completion_tokens or 0, row.first_token_at, row.finished_at) for row in rows)
    return Rates(prompt, completion) if prompt and completion else None


def expected_effort(llm: LLM, tokens: int) -> dict[str, Any]:
    """Seconds and cost of pruning messages of so many estimated tokens, as far as they can be known."""
    prompt = tokens + INSTRUCTIONS_TOKENS
    answer = max(LEAST_ANSWER, round(ANSWER_SHARE * tokens))
    rates = rates_of(llm)
    price = LlmPrice.objects.filter(llm=llm).values_list("per_million", flat=True).first()
    seconds = {"seconds": round(prompt / rates.prompt + answer / rates.completion, 1)} if rates else {}
    return seconds | ({"cost": float(price) * prompt / A_MILLION} if price is not None else {})


def _rate(rows: Iterable[tuple[int, datetime | None, datetime | None]]) -> float | None:
    times = ((tokens, (until - since).total_seconds()) for tokens, since, until in rows if since and until)
    found = [tokens / seconds for tokens, seconds in times if seconds > 0]
    return median(found) if len(found) >= LEAST_ANSWERS else None
