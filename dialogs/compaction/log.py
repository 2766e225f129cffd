"""One line in the server's log for a run's beginning and one for its end: names and numbers, never a dialog's text.

Every number of tokens is estimated, hence the `≈`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from dialogs.compaction.pruning_agent import pruning_llm
from dialogs.compaction.reads.compaction import BY_ITSELF, compactions_of_request, runs_of_turn
from dialogs.turns.state import MAX_RESTARTS
from dialogs.turns.writes.events import Code, log
from health.compaction.terms.reasons import Argument, Reason, Why, from_json
from health.models import CompactionRun

logger = logging.getLogger(__name__)
Status = CompactionRun.Status


def log_beginning(run: CompactionRun, *, estimated_before: int) -> None:
    logger.info("Compaction begins: %s", _line({**_which(run), "before": _about(estimated_before)}))


def log_end(run: CompactionRun | None) -> None:
    """Log how a run ended. None: another worker has the run, and logs it."""
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
        _log_rejected(run, step.get("why"))
    level = logging.WARNING if run.status == Status.FAILED else logging.INFO
    logger.log(level, "Compaction ended: %s", _line(told))
    if run.recovered:
        way = run.recovered.replace("_", " ")
        logger.warning("Context overflow recovery: %s triggered (dialog=%s run=%s)", way, run.dialog_id, run.pk)
    elif run.began_afresh:
        logger.info("Reset by a person: the agent begins afresh (dialog=%s run=%s)", run.dialog_id, run.pk)


def _log_rejected(run: CompactionRun, told: Any) -> None:
    """A decision of the pruning agent's that was not followed. That it gave none is logged where it was asked."""
    why = from_json(told)
    if why is None or why.why not in {Why.PRUNING_NOT_USED, Why.PRUNED_TOO_LITTLE}:
        return
    cause = why.args.get("why", why)
    if isinstance(cause, Reason) and cause.why not in {Why.NO_ANSWER, Why.ROUND_TOO_LARGE}:
        llm, cause = pruning_llm(run.dialog), _without_words(cause)
        logger.warning("Compaction %s: the pruning model %s was not followed: %s", run.pk, llm.slug, cause)
        log(Code.PRUNER_FAILED, run.dialog, run=run, limit=run.limit_tokens, cause=f"Rejected: {cause}", llm=llm.slug)


def _without_words(why: Reason) -> Reason:
    """What a model wrote, or what it was shown, has no place in a log."""
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
    """`name=value`, what is empty left out."""
    return " ".join(f"{name}={value}" for name, value in fields.items() if value != "")
