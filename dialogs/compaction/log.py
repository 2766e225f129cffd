"""Logs runs: a line in the server's log at the beginning and the end, and a line in the log of rewards (state before,
action, reward, state after).

Only names, kinds and numbers, never a dialog's text: notes of steps may quote it, so they are left out. All tokens are
estimated, hence the `≈`.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from typing import Any

from dialogs.compaction.reads.compaction import BY_ITSELF, compactions_of_request, runs_of_turn
from dialogs.context.material import Material
from dialogs.models import LLM, Dialog
from dialogs.turns.state import MAX_RESTARTS
from dialogs.turns.writes.events import Code, log
from health import reward_log
from health.compaction.config import RewardLog
from health.compaction.terms.outcome import BreakingOutcome, CompactionOutcome
from health.compaction.terms.reasons import Argument, Reason, Why, from_json
from health.compaction.terms.units import Priority
from health.configured import context_config
from health.models import CompactionRun

logger = logging.getLogger(__name__)
Status = CompactionRun.Status


def log_beginning(run: CompactionRun, *, estimated_before: int) -> None:
    logger.info("Compaction begins: %s", _line({**_which(run), "before": _about(estimated_before)}))


def log_end(run: CompactionRun | None, pruner: LLM | None) -> None:
    """Log how a run ended. None: another worker has the run, and logs it. `pruner` is who was asked what to prune."""
    if run is None:
        return
    told = {
        **_which(run),
        "before": _about(run.estimated_before),
        "after": _about(run.estimated_after),
        "status": str(run.status),
        "code": run.code,
        "reason": f'"{run.reason}"' if run.reason else "",
        "steps": ",".join(_step(step) for step in run.steps if not step.get("is_running")),
    }
    for step in run.steps:
        _log_rejected(run, step.get("why"), pruner)
    level = logging.WARNING if run.status == Status.FAILED else logging.INFO
    logger.log(level, "Compaction ended: %s", _line(told))
    if run.recovered:
        way = run.recovered.replace("_", " ")
        logger.warning("Context overflow recovery: %s triggered (dialog=%s run=%s)", way, run.dialog_id, run.pk)
    elif run.began_afresh:
        logger.info("Reset by a person: the agent begins afresh (dialog=%s run=%s)", run.dialog_id, run.pk)


def _log_rejected(run: CompactionRun, stored: Any, pruner: LLM | None) -> None:
    """Log a decision of the pruning agent that was rejected. A missing one is logged where it was asked."""
    why = from_json(stored)
    if pruner is None or why is None or why.why not in {Why.PRUNING_NOT_USED, Why.PRUNED_TOO_LITTLE}:
        return
    cause = why.args.get("why", why)
    if isinstance(cause, Reason) and cause.why not in {Why.NO_ANSWER, Why.ROUND_TOO_LARGE}:
        cause = _without_words(cause)
        logger.warning("Compaction %s: the pruning model %s was not followed: %s", run.pk, pruner.slug, cause)
        told: dict[str, Any] = {"cause": f"Rejected: {cause}", "why": cause.as_json(), "llm": pruner.slug}
        log(Code.PRUNER_FAILED, run.dialog, run=run, limit=run.limit_tokens, **told)


def _without_words(why: Reason) -> Reason:
    """The reason without what a model wrote or was shown, which has no place in a log."""
    return Reason(why.why, {name: _harmless(value) for name, value in why.args.items()})


def _harmless(value: Argument) -> Argument:
    return _without_words(value) if isinstance(value, Reason) else "…" if isinstance(value, str) else value


def attempt_of(run: CompactionRun) -> str:
    """Which of the compactions that one request may have; nothing for those of a person, which are not counted."""
    if run.trigger not in BY_ITSELF:
        return ""
    until = [other for other in runs_of_turn(run.leaf) if other.pk < run.pk]
    return f"{compactions_of_request(run.leaf, until) + 1}/{MAX_RESTARTS}"


def _which(run: CompactionRun) -> dict[str, Any]:
    return {
        "dialog": run.dialog_id,
        "run": run.pk,
        "trigger": str(run.trigger),
        "attempt": attempt_of(run),
        "limit": run.limit_tokens,
    }


def _step(step: Mapping[str, Any]) -> str:
    sizes = f"{_about(step['estimated_before'])}→{_about(step['estimated_after'])}"
    return f"{step['phase']}:{sizes}:{step['ms']:.0f}ms"


def _about(estimated_tokens: int | None) -> str:
    return "" if estimated_tokens is None else f"≈{estimated_tokens}"


def _line(fields: Mapping[str, Any]) -> str:
    """`name=value` pairs; empty values are left out."""
    return " ".join(f"{name}={value}" for name, value in fields.items() if value != "")


def keep_reward(run: CompactionRun | None, begun: Material, outcome: CompactionOutcome) -> None:
    """Write the line, where that is switched on. A log that cannot be written fails no run."""
    if run is None or run.reward is None or context_config().reward_log is not RewardLog.ON:
        return
    try:
        reward_log.append(
            row_of(run, begun, outcome), unless=lambda: not Dialog.objects.filter(pk=run.dialog_id).exists()
        )
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
        "dialog": reward_log.hash_of(run.dialog_id),
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
    """The seven numbers of a state, by their names in the configuration."""
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
