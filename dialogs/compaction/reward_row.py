"""A finished run as a line of the log of rewards: what there was, what was done, what it was worth, what there is.

Numbers, kinds and names alone. A step's note may quote what was said, so it stays out.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

from dialogs.context.material import Material
from dialogs.models import Dialog
from health import rewards
from health.compaction.config import RewardLog
from health.compaction.terms.outcome import BreakingOutcome, CompactionOutcome
from health.compaction.terms.units import Priority
from health.configured import context_config
from health.models import CompactionRun

logger = logging.getLogger(__name__)


def keep_reward(run: CompactionRun | None, begun: Material, outcome: CompactionOutcome) -> None:
    """Write the line, where that is switched on. A log that cannot be written fails no run."""
    if run is None or run.reward is None or context_config().reward_log is not RewardLog.ON:
        return
    try:
        rewards.append(row_of(run, begun, outcome), unless=lambda: not Dialog.objects.filter(pk=run.dialog_id).exists())
    except OSError:
        logger.exception("The reward of compaction %s is not logged", run.pk)


def row_of(run: CompactionRun, begun: Material, outcome: CompactionOutcome) -> dict[str, Any]:
    """A reward line: the state before, the action, its reward and the state after."""
    return {
        "stateBefore": _before(run, begun),
        "action": {
            "trigger": run.trigger,
            "chain": list(run.chain),
            "recovered": run.recovered,
            "steps": [
                {"phase": step.phase, "before": step.estimated_before, "after": step.estimated_after, "ms": step.ms}
                for step in outcome.steps
            ],
        },
        "reward": outcome.reward,
        "stateAfter": {
            "at": run.finished_at.isoformat() if run.finished_at else "",
            "status": run.status,
            "code": run.code,
            "estimatedTokens": run.estimated_after,
            "messages": run.messages_after,
            "coherence": outcome.coherence,
            "outcome": _fields(outcome.breaking),
        },
    }


def _before(run: CompactionRun, begun: Material) -> dict[str, Any]:
    units = begun.state.units
    return {
        "dialog": rewards.hash_of(run.dialog_id),
        "run": run.pk,
        "agent": run.dialog.agent_id,
        "llm": run.dialog.llm.slug,
        "limit": run.limit_tokens,
        "estimatedTokens": begun.tokens_before,
        "messages": begun.messages_before,
        "kinds": dict(Counter(str(unit.kind) for unit in units)),
        "p1": sum(unit.priority is Priority.P1 for unit in units),
        "counter": run.counter,
    }


def _fields(run: BreakingOutcome | None) -> dict[str, Any]:
    """The seven numbers, by the names of the configuration."""
    if run is None:
        return {}
    return {
        "success": run.success,
        "usedRecovery": run.used_recovery,
        "coherenceDelta": run.coherence_delta,
        "tokensReduced": run.tokens_reduced,
        "timeMs": run.time_ms,
        "priorityPreserved": run.priority_preserved,
        "originalTokens": run.original_tokens,
    }
