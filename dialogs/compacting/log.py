"""One line in the server's log for a run's beginning and one for its end: names and numbers, never a dialog's text.

Every number of tokens is estimated, hence the `≈`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from dialogs.driver.decide import MAX_COMPACTIONS
from dialogs.selectors.compaction import BY_ITSELF, runs_of_turn
from health.compaction.config import RecoveryMode
from health.models import CompactionRun

logger = logging.getLogger(__name__)
Status = CompactionRun.Status


def log_beginning(run: CompactionRun, *, estimated_before: int) -> None:
    logger.info("Compaction begins: %s", _line({**_which(run), "before": _about(estimated_before)}))


def log_end(run: CompactionRun | None) -> None:
    """None: another worker has it, and will tell."""
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
    level = logging.WARNING if run.status == Status.FAILED else logging.INFO
    logger.log(level, "Compaction ended: %s", _line(told))
    if run.recovered or run.began_afresh:
        way = (run.recovered or RecoveryMode.FRESH_START).replace("_", " ")
        logger.warning("Context overflow recovery: %s triggered (dialog=%s run=%s)", way, run.dialog_id, run.pk)


def attempt_of(run: CompactionRun) -> str:
    """Which of the compactions that one request may have; nothing for those of a person, which are not counted."""
    if run.trigger not in BY_ITSELF:
        return ""
    earlier = sum(other.pk < run.pk for other in runs_of_turn(run.leaf))
    return f"{earlier + 1}/{MAX_COMPACTIONS}"


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
