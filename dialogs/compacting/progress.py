"""What is known of a run before it ends: how much there is, whose priority it holds, what a strategy is about to do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.db.models import Q

from dialogs.compacting.foresight import foreseen
from dialogs.compacting.material import Material
from dialogs.driver.pruning_agent import pruning_llm
from dialogs.models import MessageMark
from health.compaction.outcome import Step
from health.compaction.strategies.prune_with_agent import AIM, offered_to
from health.compaction.strategies.summarize_old import old_part, to_be_told
from health.compaction.units import ContextState, Kind, Unit, total
from health.models import CompactionRun

SUMMARIZE_OLD, PRUNE_WITH_AGENT = "summarize_old", "prune_with_agent"
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
    tags = [(mark.priority or 1, mark.area) for mark in marks if mark.message_id in ids]
    # One with an area says more than one without.
    priority, area = min(tags, key=lambda tag: (tag[0], not tag[1]), default=(None, ""))
    return {"priority": priority, "priority_area": area}


def begins(phase: str) -> dict[str, str]:
    """The column that a reported step changes, if it begins something."""
    return {"phase": phase} if phase in BEGINNINGS else {}


def expected(name: str, state: ContextState, run: CompactionRun | None = None) -> list[dict[str, Any]]:
    """What a summary, or the pruning agent, is about to make of the old part, as a step that is not done.

    Of the agent also how long that may take and what it costs. Nothing of other strategies.
    """
    if name == SUMMARIZE_OLD:
        gone = total(to_be_told(state, old_part(state)))
        return [_running(name, gone, min(gone, state.config.summarize_old.summary_length))]
    if run and name == PRUNE_WITH_AGENT and (cuts := offered_to(state.units)):
        offered = sum(total(cut.units) for cut in cuts)
        step = _running(name, state.estimated_tokens, round(AIM * state.estimated_tokens))
        return [step | foreseen(pruning_llm(run), offered)]
    return []


def _running(name: str, before: int, after: int) -> dict[str, Any]:
    step = Step(phase=name, estimated_before=before, estimated_after=after, changed=False)
    return step.as_json() | {"is_running": True}
