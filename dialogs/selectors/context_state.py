"""Everything that is known of a dialog's context, for programs: measured health and the estimated budget, apart.

Also the compactions so far, and the five counters, each with its own scope: none of them counts for another.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from dialogs.compacting.guard import active_guard
from dialogs.driver.decide import MAX_COMPACTIONS
from dialogs.models import Dialog, Generation
from dialogs.models.dialog import COUNTDOWN_TURNS
from dialogs.selectors.budget import FREE, RESERVE, Budget, budget
from dialogs.selectors.compaction import BY_ITSELF, open_run, runs_of_turn
from dialogs.selectors.compaction_details import FRAME
from dialogs.selectors.compaction_rows import HEAVY
from dialogs.selectors.turns import tries_of_due_answer
from health.compaction.pressure import pressure
from health.configured import context_config
from health.models import CompactionRun, ContextEvent, HealthReading

# What a client reads of a run; sizes are estimates.
TOLD_OF_RUN = (
    *("id", "trigger", "status", "phase", "limit_tokens", "tokens_now", "estimated_before", "estimated_after"),
    *("messages_before", "messages_after", "recovered", "code", "reason", "why"),
    *("queued_at", "started_at", "finished_at"),
)
# One more within the hour, and seed 4 starts afresh.
MOST_OVERFLOWS = 2


@dataclass(frozen=True, kw_only=True)
class HealthNow:
    """The newest reading. Every number is the provider's; null where it reported none."""

    kind: str = "measured"
    level: str
    reason: str
    prompt_tokens: int | None
    completion_tokens: int | None
    total_tokens: int | None
    cached_tokens: int | None
    context_window: int | None
    percent: float | None
    read_at: datetime


@dataclass(frozen=True, kw_only=True)
class BudgetNow:
    """The next request. `tokens` is the sum of `parts`; `percent` and `pressure` count the reserve as used.

    `pressure` is null where nobody is guarded: nothing is compacted by itself then.
    """

    kind: str = "estimated"
    parts: dict[str, int]
    tokens: int
    reserve: int
    limit: int | None
    percent: float | None
    pressure: str | None
    refused: str
    trace: list[dict[str, Any]]
    counter: str
    grade: str


@dataclass(frozen=True, kw_only=True)
class Count:
    """`value` of `most`, within `scope`."""

    scope: str
    value: int
    most: int


@dataclass(frozen=True, kw_only=True)
class ContextNow:
    """`restart_requested`: the request that is due waits for a compaction and is made again after it."""

    messages: int
    health: HealthNow | None
    budget: BudgetNow
    restart_requested: bool
    open_run: dict[str, Any] | None
    compactions: list[dict[str, Any]]
    counters: dict[str, Count]


def context_state(dialog: Dialog) -> ContextNow:
    """`dialog` with its agent, LLM and provider."""
    running = open_run(dialog.pk)
    runs = CompactionRun.objects.filter(dialog=dialog).order_by("pk").defer(*HEAVY)
    return ContextNow(
        messages=dialog.messages.count(),
        health=_health(dialog),
        budget=_budget(dialog, budget(dialog)),
        restart_requested=bool(running and dialog.answer_due and running.trigger in BY_ITSELF),
        open_run=_told(running) if running else None,
        compactions=[_told(run) for run in runs],
        counters=_counters(dialog, runs.last()),
    )


def _told(run: CompactionRun) -> dict[str, Any]:
    return {name: getattr(run, name) for name in TOLD_OF_RUN}


def _health(dialog: Dialog) -> HealthNow | None:
    newest = (
        HealthReading.objects.filter(generation__dialog=dialog).select_related("generation").order_by("-pk").first()
    )
    if newest is None:
        return None
    made: Generation = newest.generation
    return HealthNow(
        level=newest.level,
        reason=newest.reason,
        prompt_tokens=newest.prompt_tokens,
        completion_tokens=made.completion_tokens,
        total_tokens=made.total_tokens,
        cached_tokens=made.cached_tokens,
        context_window=newest.context_window,
        percent=None if newest.hard_util is None else round(100 * newest.hard_util, 1),
        read_at=newest.read_at,
    )


def _budget(dialog: Dialog, found: Budget) -> BudgetNow:
    used = found.used + found.reserve
    return BudgetNow(
        parts={part.name: part.tokens for part in found.slices if part.name not in (RESERVE, FREE)},
        tokens=found.used,
        reserve=found.reserve,
        limit=found.limit,
        percent=round(100 * used / found.limit, 1) if found.limit else None,
        pressure=_pressure(dialog, used),
        refused=str(found.refused or ""),
        trace=[{"what": term.what, "tokens": term.tokens, "source": term.source} for term in found.trace],
        counter=found.counter,
        grade=found.grade,
    )


def _pressure(dialog: Dialog, used: int) -> str | None:
    guard = active_guard(dialog)
    if guard is None:
        return None
    return str(pressure(used, limit=guard.limit, warning_threshold=guard.config.warning_threshold))


def _counters(dialog: Dialog, newest: CompactionRun | None) -> dict[str, Count]:
    leaf, course = dialog.current_leaf, dialog.courses.last()
    tries = tries_of_due_answer(dialog) if dialog.answer_due else []
    return {
        "countdown_turns": Count(
            scope="dialog", value=course.countdown_turns if course else COUNTDOWN_TURNS, most=COUNTDOWN_TURNS
        ),
        "restarts": Count(scope="request", value=len(runs_of_turn(leaf)) if leaf else 0, most=MAX_COMPACTIONS),
        "hybrid_iterations": Count(
            scope="break", value=iterations_of(newest), most=context_config().hybrid.max_iterations
        ),
        "retry_attempts": Count(
            scope="call",
            value=sum(one.status == Generation.Status.FAILED for one in tries),
            most=settings.DOMINDS_PROVIDER_ATTEMPTS,
        ),
        "overflows": Count(scope="agent-hour", value=_overflows(dialog), most=MOST_OVERFLOWS),
    }


def iterations_of(run: CompactionRun | None) -> int:
    """How often the chain was gone through: as often as the strategy that was tried most."""
    steps = run.steps if run else []
    tried = Counter(step["phase"] for step in steps if step["phase"] not in FRAME and not step.get("is_running"))
    return max(tried.values(), default=0)


def _overflows(dialog: Dialog) -> int:
    """Of this agent in the last hour, in all dialogs of the same owner: others' are nobody else's business."""
    recent = ContextEvent.objects.filter(
        code=ContextEvent.Code.OVER_HIT, happened_at__gt=timezone.now() - timedelta(hours=1)
    )
    return recent.filter(dialog__agent=dialog.agent_id, dialog__owner=dialog.owner_id).count()
