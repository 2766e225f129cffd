"""How full the next request would be: what the guard's rules of `decide` look at. Reads and estimates only."""

from __future__ import annotations

from dataclasses import replace

from dialogs.compacting.estimate import counter_of, estimate, overhead
from dialogs.compacting.guard import Guard, guard_of
from dialogs.compacting.material import beside, units_of
from dialogs.compacting.present import offered_tools, present_context
from dialogs.context import Context
from dialogs.driver.state import Guarding, State
from dialogs.models import Dialog, Generation
from dialogs.selectors.compaction import open_run, runs_of_turn
from health.compaction.floor import diagnosis, floor_of
from health.compaction.invariants import open_round
from health.compaction.ports import Counter, Kit
from health.compaction.pressure import Pressure, pressure
from health.compaction.reasons import Reason, Why
from health.compaction.units import ContextState, Role
from health.models import CompactionRun

Status = CompactionRun.Status


def guarded(state: State, dialog: Dialog) -> State:
    """The state with what the guard knows, where somebody guards this dialog and an answer is due."""
    guard = guard_of(dialog) if state.answer_due and dialog.current_leaf_id else None
    return replace(state, guard=look(dialog, guard)) if guard else state


def look(dialog: Dialog, guard: Guard) -> Guarding:
    leaf = dialog.current_leaf
    context = present_context(dialog, guard)
    counter = counter_of(dialog.llm)
    tools = offered_tools(dialog)
    tokens = estimate(context, tools, counter).tokens + guard.reserve
    runs = runs_of_turn(leaf) if leaf else []
    level = pressure(tokens, limit=guard.limit, warning_threshold=guard.config.warning_threshold)
    return Guarding(
        pressure=level,
        tokens=tokens,
        limit=guard.limit,
        compactions=len(runs),
        tried=any(run.leaf_id == dialog.current_leaf_id for run in runs),
        running=open_run(dialog.pk) is not None,
        refused=guard.refused or (refusal(context, guard, counter, tools) if level is not Pressure.NORMAL else None),
        relieved=_relieved(dialog, runs),
        held=leaf is not None and leaf.course.guard_held,
    )


def refusal(context: Context, guard: Guard, counter: Counter, tools: list[dict[str, object]]) -> Reason | None:
    """Why compaction cannot help, told before it is tried: one result too large, or what must stay too much."""
    kit = Kit(counter=counter)
    besides = overhead(context.dialog.llm, tools, counter) + guard.reserve + beside(context, counter)
    state = ContextState(units=kit.counted(units_of(context.whole())), limit=guard.limit, overhead_tokens=besides)
    system = sum(unit.estimated_tokens or 0 for unit in state.units if unit.role is Role.SYSTEM)
    room = guard.limit - besides - system
    results = [unit.estimated_tokens or 0 for unit in open_round(state.units) if unit.role is Role.TOOL]
    if results and max(results) > room:
        return Reason(Why.RESULT_TOO_LARGE, {"tokens": max(results), "limit": guard.limit, "room": max(0, room)})
    floor = floor_of(state, kit)
    return diagnosis(floor, limit=guard.limit) if floor.tokens > guard.limit else None


def _relieved(dialog: Dialog, runs: list[CompactionRun]) -> bool:
    failed = Generation.objects.filter(prompt_leaf_id=dialog.current_leaf_id).order_by("-id").first()
    applied = [run for run in runs if run.status == Status.APPLIED and run.finished_at]
    if failed is None or not applied or failed.finished_at is None:
        return False
    return bool(applied[-1].finished_at and applied[-1].finished_at >= failed.finished_at)
