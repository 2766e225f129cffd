"""The state of a dialog's context for programs: measured health, and separately the estimated budget; the compactions;
and five counters, each with its own scope.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from dialogs.compaction.reads.budget import FREE, RESERVE, Budget, budget
from dialogs.compaction.reads.compaction import BY_ITSELF, compactions_of_request, open_run, runs_of_turn
from dialogs.compaction.reads.compaction_card import FRAME
from dialogs.compaction.reads.compaction_rows import HEAVY
from dialogs.llms.counter import counter_of
from dialogs.llms.guard import active_guard, config_of
from dialogs.models import Dialog, Generation
from dialogs.models.dialog import COUNTDOWN_TURNS
from dialogs.transcript.reads.dialogs import dialog_meter
from dialogs.turns.reads.turns import tries_of_due_answer
from dialogs.turns.state import MAX_RESTARTS
from health.compaction.terms.pressure import pressure
from health.configured import context_config
from health.models import CompactionRun, ContextEvent, HealthReading

# What a client reads of a run; sizes are estimates.
TOLD_OF_RUN = (
    *("id", "trigger", "status", "phase", "limit_tokens", "tokens_now", "estimated_before", "estimated_after"),
    *("messages_before", "messages_after", "recovered", "code", "reason", "why"),
    *("queued_at", "started_at", "finished_at"),
)
# One more within the hour, and a fresh start follows.
MOST_OVERFLOWS = 2


@dataclass(frozen=True, kw_only=True)
class HealthNow:
    """The newest reading. Every number is the provider's; null where it reported none.

    `stale` says why it is of a context that is no longer the dialog's: its numbers stand, its level is unknown.
    """

    kind: str = "measured"
    level: str
    reason: str
    stale: str
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

    `pressure` is null where nobody is guarded: nothing is compacted by itself then. `min_limit` is the least that a
    limit may be set to; compaction begins above `warning_threshold` of the limit. `family` is the model's by its name,
    empty where that says nothing.
    """

    kind: str = "estimated"
    parts: dict[str, int]
    tokens: int
    reserve: int
    limit: int | None
    min_limit: int
    warning_threshold: float
    percent: float | None
    pressure: str | None
    refused: str
    trace: list[dict[str, Any]]
    counter: str
    grade: str
    family: str


@dataclass(frozen=True, kw_only=True)
class AnswerNow:
    """The answer that is being made, as far as it was stored: once a second. `tokens` is prompt and answer."""

    kind: str = "estimated"
    answer_tokens: int
    tokens: int
    window: int | None
    percent: float | None


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
    answer: AnswerNow | None
    restart_requested: bool
    open_run: dict[str, Any] | None
    compactions: list[dict[str, Any]]
    counters: dict[str, Count]


def context_state(dialog: Dialog) -> ContextNow:
    """`dialog` with its agent, LLM and provider."""
    running = open_run(dialog.pk)
    runs = CompactionRun.objects.filter(dialog=dialog).order_by("pk").defer(*HEAVY)
    found = budget(dialog)
    return ContextNow(
        messages=dialog.messages.count(),
        health=_health(dialog),
        budget=_budget(dialog, found),
        answer=_answer(dialog, prompt_tokens=found.used),
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
    shown = dialog_meter(dialog)
    return HealthNow(
        level=shown.level,
        reason=newest.reason,
        stale=shown.stale,
        prompt_tokens=newest.prompt_tokens,
        completion_tokens=made.completion_tokens,
        total_tokens=made.total_tokens,
        cached_tokens=made.cached_tokens,
        context_window=newest.context_window,
        percent=None if newest.hard_util is None else round(100 * newest.hard_util, 1),
        read_at=newest.read_at,
    )


def _answer(dialog: Dialog, *, prompt_tokens: int) -> AnswerNow | None:
    """The answer under way. Its prompt is the next request: nothing has been added to that yet."""
    made = Generation.objects.filter(dialog=dialog, status=Generation.Status.RUNNING).order_by("-pk").first()
    if made is None:
        return None
    answer = sum(counter_of(dialog.llm).count([made.partial_text, made.partial_reasoning]))
    tokens, window = prompt_tokens + answer, dialog.llm.context_length
    percent = round(100 * tokens / window, 1) if window else None
    return AnswerNow(answer_tokens=answer, tokens=tokens, window=window, percent=percent)


def _budget(dialog: Dialog, found: Budget) -> BudgetNow:
    used, config = found.used + found.reserve, config_of(dialog)
    return BudgetNow(
        parts={part.name: part.tokens for part in found.slices if part.name not in (RESERVE, FREE)},
        tokens=found.used,
        reserve=found.reserve,
        limit=found.limit,
        min_limit=config.min_limit,
        warning_threshold=config.warning_threshold,
        percent=round(100 * used / found.limit, 1) if found.limit else None,
        pressure=_pressure(dialog, used),
        refused=str(found.refused or ""),
        trace=[{"what": term.what, "tokens": term.tokens, "source": term.source} for term in found.trace],
        counter=found.counter,
        grade=found.grade,
        family=found.family,
    )


def _pressure(dialog: Dialog, used: int) -> str | None:
    guard = active_guard(dialog)
    if guard is None:
        return None
    return str(pressure(used, limit=guard.limit, warning_threshold=guard.config.warning_threshold))


def _counters(dialog: Dialog, newest: CompactionRun | None) -> dict[str, Count]:
    leaf, course = dialog.current_leaf, dialog.courses.last()
    tries = tries_of_due_answer(dialog) if dialog.answer_due else []
    restarts = compactions_of_request(leaf, runs_of_turn(leaf)) if leaf else 0
    return {
        "countdown_turns": Count(
            scope="dialog", value=course.countdown_turns if course else COUNTDOWN_TURNS, most=COUNTDOWN_TURNS
        ),
        "restarts": Count(scope="request", value=restarts, most=MAX_RESTARTS),
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
    """How often the run went through its chain: as often as the strategy that was tried most."""
    steps = run.steps if run else []
    tried = Counter(step["phase"] for step in steps if step["phase"] not in FRAME and not step.get("is_running"))
    return max(tried.values(), default=0)


def _overflows(dialog: Dialog) -> int:
    """How often this agent was over its limit in the last hour, in this owner's dialogs alone."""
    recent = ContextEvent.objects.filter(
        code=ContextEvent.Code.OVER_HIT, happened_at__gt=timezone.now() - timedelta(hours=1)
    )
    return recent.filter(dialog__agent=dialog.agent_id, dialog__owner=dialog.owner_id).count()
