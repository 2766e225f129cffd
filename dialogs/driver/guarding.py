"""How full the next request would be: what the guard's rules of `decide` look at. Reads and estimates only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dialogs.compacting.estimate import Sizing, overhead
from dialogs.compacting.guard import Guard, guard_of, is_off, room_of
from dialogs.compacting.material import beside, of_the_floor
from dialogs.compacting.present import next_context, offered_tools
from dialogs.context import Context
from dialogs.driver.decide import MAX_COMPACTIONS
from dialogs.driver.state import Guarding, State
from dialogs.models import Dialog, Generation, Message
from dialogs.selectors.compaction import (
    compactions_of_request,
    compactions_without_growth,
    is_vain,
    last_run_of_course,
    open_run,
    runs_of_turn,
)
from dialogs.selectors.providers import max_output_of
from health.compaction.config import RecoveryMode
from health.compaction.floor import Floor, diagnosis, floor_of, least_of
from health.compaction.ports import Kit
from health.compaction.pressure import SEVERE_SHARE, Pressure, pressure
from health.compaction.reasons import Reason, Why
from health.compaction.units import ContextState
from health.models import CompactionRun

Status = CompactionRun.Status
# While a request fits, so many answers at least stand between two compactions.
ANSWERS_BETWEEN = 3


def guarded(state: State, dialog: Dialog) -> State:
    """The state with what the guard knows, where this dialog has one and an answer is due."""
    guard = guard_of(dialog) if state.answer_due and dialog.current_leaf_id else None
    if guard is None and state.answer_due and is_off(dialog):
        # A refusal is told then; nothing is opened, and nothing compacted.
        return replace(state, guard=Guarding(pressure=Pressure.NORMAL, off=True))
    if guard is None:
        return state
    return replace(state, guard=look(dialog, guard, was_too_much=state.overflowed or state.filled))


def sizing_of(dialog: Dialog, guard: Guard | None) -> Sizing:
    return Sizing(next_context(dialog, guard), offered_tools(dialog))


def is_sent_as_it_is(context: Context, tools: list[dict[str, Any]]) -> bool:
    """Will the guard surely neither compact this request nor shorten its answer? Told without counting a token."""
    guard = guard_of(context.dialog)
    if guard is None:
        return True
    sizing, asked = Sizing(context, tools), max_output_of(context.dialog)
    has_room = sizing.is_within(guard.room) if guard.off and guard.cuts_silently else guard.off or is_far(sizing, guard)
    return has_room and (asked is None or guard.window is None or sizing.is_within(guard.window - asked))


def is_far(sizing: Sizing, guard: Guard) -> bool:
    """So far from the threshold that nothing needs to be counted, nor looked at."""
    return not guard.refused and sizing.is_within(guard.begins_at)


def look(dialog: Dialog, guard: Guard, *, was_too_much: bool = False) -> Guarding:
    """`was_too_much`: the last try was refused as too long, or filled the window: what was done about it counts."""
    if guard.off:
        return _off(dialog, guard)
    sizing = sizing_of(dialog, guard)
    if is_far(sizing, guard) and not was_too_much:
        return Guarding(pressure=Pressure.NORMAL, limit=guard.limit, running=open_run(dialog.pk) is not None)
    tokens = sizing.estimate.tokens + guard.reserve
    level = pressure(tokens, limit=guard.limit, warning_threshold=guard.config.warning_threshold)
    found = replace(
        _tried(dialog, guard, tokens),
        spared=_fits_before_a_cut(tokens, guard) and _was_just_compacted(dialog),
        pressure=level,
        tokens=tokens,
        limit=guard.limit,
        refused=guard.refused,
        running=open_run(dialog.pk) is not None,
    )
    return found if guard.refused or _is_left_as_it_is(found) else _with_floor(found, _Floor.of(sizing, guard))


def _is_left_as_it_is(found: Guarding) -> bool:
    """Will nothing be compacted, whatever must stay of it?"""
    was_tried = found.tried or found.spared or found.vain or found.compactions >= MAX_COMPACTIONS
    is_too_much = found.pressure is Pressure.OVERFLOW
    return found.running or found.pressure is Pressure.NORMAL or (was_tried and not is_too_much)


def _with_floor(found: Guarding, floor: _Floor) -> Guarding:
    return replace(found, stuck=floor.stuck(found.tokens, found.pressure), refused=floor.refused)


def _fits_before_a_cut(tokens: int, guard: Guard) -> bool:
    """Is there room for the least answer before the mark at which an answer is cut?"""
    return guard.window is None or tokens - guard.reserve + guard.answer <= SEVERE_SHARE * guard.window


def _was_just_compacted(dialog: Dialog) -> bool:
    """Fewer than three answers ago. Requests that add much would else be compacted one after another."""
    leaf = dialog.current_leaf
    last = last_run_of_course(leaf.course_id) if leaf else None
    if last is None or last.status != Status.APPLIED or last.finished_at is None:
        return False
    answers = Generation.objects.filter(course_id=last.course_id, started_at__gt=last.finished_at)
    return answers.count() < ANSWERS_BETWEEN


def _off(dialog: Dialog, guard: Guard) -> Guarding:
    """Where compaction is switched off: what would be cut without a word is refused, all else is sent. A limit that is
    narrower than the window refuses nothing."""
    sizing = sizing_of(dialog, guard) if guard.cuts_silently else None
    room = room_of(dialog) or guard.room
    if sizing is None or sizing.is_within(room):
        return Guarding(pressure=Pressure.NORMAL, limit=room, off=True)
    tokens = sizing.estimate.tokens
    return Guarding(
        pressure=pressure(tokens, limit=room),
        tokens=tokens,
        limit=room,
        off=True,
        refused=Reason(Why.WOULD_BE_CUT, {"tokens": tokens, "limit": room}) if tokens > room else None,
    )


def _tried(dialog: Dialog, guard: Guard, tokens: int) -> Guarding:
    """What compaction has come to so far, for this request and in this turn."""
    leaf = dialog.current_leaf
    if leaf is None:
        return Guarding(pressure=Pressure.NORMAL)
    runs = runs_of_turn(leaf)
    of_request = compactions_of_request(leaf, runs)
    # The rounds of a client's turn are its own requests.
    in_turn = 0 if dialog.is_client_driven else compactions_without_growth(runs, limit=guard.limit)
    return Guarding(
        pressure=Pressure.NORMAL,
        compactions=max(of_request, in_turn),
        tried=any(run.leaf_id == leaf.pk for run in runs),
        vain=is_vain(_last_run(leaf, runs), leaf=leaf, tokens=tokens, limit=guard.limit),
        relieved=_relieved(dialog, runs),
        held=leaf.course.guard_held,
    )


def _last_run(leaf: Message, runs: list[CompactionRun]) -> CompactionRun | None:
    """The newest of the course; but none that was made for this message before a person tried again."""
    last = last_run_of_course(leaf.course_id)
    return None if last and last.leaf_id == leaf.pk and last not in runs else last


@dataclass(frozen=True)
class _Floor:
    """What no strategy can remove of a request that fits, and what not even the last resort makes shorter."""

    floor: Floor
    least: Floor
    guard: Guard

    @classmethod
    def of(cls, sizing: Sizing, guard: Guard) -> _Floor:
        context, counter = sizing.context, sizing.counter
        kit = Kit(counter=counter)
        tools = offered_tools(context.dialog, compacted=True)
        besides = overhead(context.dialog.llm, tools, counter) + guard.reserve + beside(context, counter)
        units = of_the_floor(context, counter)
        state = ContextState(units=units, limit=guard.limit, overhead_tokens=besides, config=guard.config)
        state = replace(state, answer_tokens=guard.reserve)
        is_strict = guard.config.recovery_mode is RecoveryMode.ERROR
        return cls(floor_of(state, kit, is_whole=True), floor_of(state, kit) if is_strict else least_of(state), guard)

    @property
    def refused(self) -> Reason | None:
        return diagnosis(self.least, limit=self.guard.limit) if self.least.tokens > self.guard.limit else None

    def stuck(self, tokens: int, level: Pressure) -> Reason | None:
        """Why a request that fits is not compacted. None where compaction can free enough, or must be tried."""
        too_little = tokens - self.floor.tokens < self.guard.config.min_gain * tokens
        if level is Pressure.OVERFLOW or not (too_little or self.floor.tokens > self.guard.threshold):
            return None
        return Reason(Why.STUCK, {"why": diagnosis(self.floor, limit=self.guard.limit)})


def _relieved(dialog: Dialog, runs: list[CompactionRun]) -> bool:
    failed = Generation.objects.filter(prompt_leaf_id=dialog.current_leaf_id).order_by("-id").first()
    applied = [run for run in runs if run.status == Status.APPLIED and run.finished_at]
    if failed is None or not applied or failed.finished_at is None:
        return False
    return bool(applied[-1].finished_at and applied[-1].finished_at >= failed.finished_at)
