"""How full the next request would be: the guard's values for the rules in `decide`. Reads and estimates only."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.utils.functional import cached_property

from dialogs.agents.reads import servers_to_ask
from dialogs.compaction.reads.compaction import (
    compactions_of_request,
    compactions_without_growth,
    has_freed_all,
    is_being_compacted,
    is_vain,
    last_run_of_course,
    runs_of_turn,
)
from dialogs.context.carry_over import since_answer
from dialogs.context.estimate import Sizing, as_stored, next_context, offered_tools, overhead
from dialogs.context.material import beside, of_the_floor, with_unanswered
from dialogs.llms.guard import Guard, guard_of, is_off, room_of
from dialogs.llms.reads import max_output_of
from dialogs.models import Dialog, Generation, McpServer, Message
from dialogs.models.message import BY_PEOPLE, Role
from dialogs.providers.base import ChatRequest, ProviderSettings
from dialogs.turns.state import MAX_RESTARTS, Guarding, State
from health.compaction.laws.floor import Floor, diagnosis, floor_of, irreducible
from health.compaction.terms.ports import Counter, Kit
from health.compaction.terms.pressure import SEVERE_SHARE, Pressure, pressure
from health.compaction.terms.reasons import Reason, Why
from health.compaction.terms.units import ContextState
from health.models import CompactionRun
from health.tokens.corrected import likely_of

Status = CompactionRun.Status
# While requests fit, the least number of answers between two compactions.
ANSWERS_BETWEEN = 3
# The largest share of a refused request's messages that a person's last message may have for a new course to help.
ALONE_SHARE = 0.9


@dataclass(frozen=True)
class PreparedRequest:
    """Computed for a client's request before its newest messages are stored: guard, size, the request itself, the
    provider's settings, and the number of its generation, if known."""

    guard: Guard | None
    sizing: Sizing
    request: ChatRequest
    settings: ProviderSettings
    number: int | None


@dataclass(frozen=True)
class LoadedDialog:
    """A dialog's row, with its guard and the size of its next request, each computed on first use and cached."""

    dialog: Dialog
    # Its branch, if just read, and what was computed ahead for this request.
    branch: tuple[Message, ...] | None = None
    prepared: PreparedRequest | None = None
    # The dialog was created by this request.
    is_new: bool = False
    # MCP servers of its agent whose tools must be listed before it is driven.
    to_ask: tuple[McpServer, ...] = ()

    @cached_property
    def guard(self) -> Guard | None:
        return self.prepared.guard if self.prepared else guard_of(self.dialog)

    @cached_property
    def sizing(self) -> Sizing:
        if self.prepared and self.branch:
            known = self.prepared.sizing
            return Sizing(as_stored(known.context, self.dialog, self.branch), known.tools).as_large_as(known)
        return Sizing(next_context(self.dialog, self.guard, self.branch), offered_tools(self.dialog))


def load(dialog: Dialog) -> LoadedDialog:
    """Read a dialog to drive. A client's dialog has no MCP servers to list: its client sends the tools."""
    return LoadedDialog(dialog, to_ask=() if dialog.is_client_driven else tuple(servers_to_ask(dialog.agent)))


def with_guarding(state: State, loaded: LoadedDialog) -> State:
    """The state with the guard's values, if this dialog has a guard and an answer is due."""
    guard = loaded.guard if state.answer_due and loaded.dialog.current_leaf_id else None
    if guard is None and state.answer_due and is_off(loaded.dialog):
        # Then a refusal is reported; no course is opened and nothing compacted.
        return replace(state, guard=Guarding(pressure=Pressure.NORMAL, off=True))
    if guard is None:
        return state
    return replace(state, guard=read_guarding(loaded, guard, was_refused=state.overflowed, was_filled=state.filled))


def is_sent_as_it_is(sizing: Sizing, guard: Guard | None) -> bool:
    """Is it certain, without counting a token, that the guard neither compacts this request nor shortens its answer?"""
    if guard is None:
        return True
    asked = max_output_of(sizing.context.dialog)
    has_room = sizing.is_within(guard.room) if guard.off and guard.cuts_silently else guard.off or is_far(sizing, guard)
    return has_room and (asked is None or guard.window is None or sizing.is_within(guard.window - asked))


def is_far(sizing: Sizing, guard: Guard) -> bool:
    """Is the request certainly below the threshold, so that nothing needs to be counted or read?"""
    return not guard.refused and sizing.is_within(guard.begins_at)


def read_guarding(
    loaded: LoadedDialog, guard: Guard, *, was_refused: bool = False, was_filled: bool = False
) -> Guarding:
    """The guard's values for `decide`. After a refusal or a filled window, the compactions made because of it count."""
    if guard.off:
        return _off(loaded, guard)
    dialog, sizing = loaded.dialog, loaded.sizing
    if is_far(sizing, guard) and not (was_refused or was_filled):
        is_running = not loaded.is_new and is_being_compacted(dialog.pk)
        return Guarding(pressure=Pressure.NORMAL, limit=guard.limit, running=is_running)
    tokens = sizing.estimate.tokens + guard.reserve
    level = pressure(tokens, limit=guard.limit, warning_threshold=guard.config.warning_threshold)
    last = last_run_of_course(dialog.current_leaf.course_id) if dialog.current_leaf else None
    found = replace(
        _tried(dialog, guard, tokens, last),
        spared=_fits_before_a_cut(tokens, guard) and _was_just_compacted(last),
        pressure=level,
        tokens=tokens,
        limit=guard.limit,
        refused=guard.refused,
        running=is_being_compacted(dialog.pk),
        alone=_alone(sizing) if was_refused else None,
    )
    if guard.refused or _is_left_as_it_is(found):
        return found
    found = _with_floor(found, _RequestFloor.of(sizing, guard))
    # Where nothing more can be freed that is said first.
    freed_all = not found.stuck and has_freed_all(last, tokens=tokens, guard=guard)
    return replace(found, spared=found.spared or freed_all)


def _alone(sizing: Sizing) -> Reason | None:
    """Why a new course would be refused too: the person's last message alone is most of the request."""
    said = (one for one in since_answer(sizing.context.branch) if one.origin in BY_PEOPLE and one.role == Role.USER)
    words = [one.content for one in said]
    tokens = sum(sizing.counter.count(words)) if words else 0
    if tokens < ALONE_SHARE * sizing.estimate.messages:
        return None
    return Reason(Why.WORDS_ALONE, {"words": tokens, "tokens": sizing.estimate.tokens})


def _is_left_as_it_is(found: Guarding) -> bool:
    """Is the request sent without a compaction, whatever its size?"""
    was_tried = found.tried or found.spared or found.vain or found.compactions >= MAX_RESTARTS
    is_too_much = found.pressure is Pressure.OVERFLOW
    return found.running or found.pressure is Pressure.NORMAL or (was_tried and not is_too_much)


def _with_floor(found: Guarding, floor: _RequestFloor) -> Guarding:
    # What the server refused it would refuse again: so much of it are the words that end it.
    why = floor.refused or (found.alone if floor.is_all_there_is else None)
    # What is too long only by a margin or a guess may fit: it is sent, if the server refuses what does not fit.
    level = Pressure.SEVERE if floor.may_fit and found.pressure is Pressure.OVERFLOW else found.pressure
    stuck = floor.stuck(found.tokens, level)
    return replace(found, pressure=level, stuck=stuck, refused=why, alone=found.alone or why)


def _fits_before_a_cut(tokens: int, guard: Guard) -> bool:
    """Is there room for the minimal answer before the point at which an answer is cut?"""
    return guard.window is None or tokens - guard.reserve + guard.answer <= SEVERE_SHARE * guard.window


def _was_just_compacted(last: CompactionRun | None) -> bool:
    """Fewer than three answers ago: else large requests in a row would be compacted one after another."""
    if last is None or last.status != Status.APPLIED or last.finished_at is None:
        return False
    answers = Generation.objects.filter(course_id=last.course_id, started_at__gt=last.finished_at)
    return answers.count() < ANSWERS_BETWEEN


def _off(loaded: LoadedDialog, guard: Guard) -> Guarding:
    """With compaction off: refuse only what the server would cut silently; a limit below the window refuses nothing."""
    sizing = loaded.sizing if guard.cuts_silently else None
    room = room_of(loaded.dialog) or guard.room
    if sizing is None or sizing.is_within(room):
        return Guarding(pressure=Pressure.NORMAL, limit=room, off=True)
    tokens = sizing.estimate.tokens
    return Guarding(
        pressure=pressure(tokens, limit=room),
        tokens=tokens,
        limit=room,
        off=True,
        refused=Reason(Why.WOULD_BE_CUT, {"tokens": tokens, "limit": guard.told(room)}) if tokens > room else None,
    )


def _tried(dialog: Dialog, guard: Guard, tokens: int, last: CompactionRun | None) -> Guarding:
    """The results of the compactions for this request and in this turn. `last` is the newest run of the course."""
    leaf = dialog.current_leaf
    if leaf is None:
        return Guarding(pressure=Pressure.NORMAL)
    runs = runs_of_turn(leaf)
    of_request = compactions_of_request(leaf, runs)
    # In a client's turn each round is a request of its own.
    in_turn = 0 if dialog.is_client_driven else compactions_without_growth(runs, limit=guard.limit)
    return Guarding(
        pressure=Pressure.NORMAL,
        compactions=max(of_request, in_turn),
        tried=any(run.leaf_id == leaf.pk for run in runs),
        vain=is_vain(_of_this_try(last, leaf, runs), leaf=leaf, tokens=tokens, limit=guard.limit),
        relieved=_relieved(dialog, runs),
        held=leaf.course.guard_held,
    )


def _of_this_try(last: CompactionRun | None, leaf: Message, runs: list[CompactionRun]) -> CompactionRun | None:
    """The newest run; None if it was made for this message before a person pressed *Retry*."""
    return None if last and last.leaf_id == leaf.pk and last not in runs else last


@dataclass(frozen=True)
class _RequestFloor:
    """The tokens that no strategy can remove from a request that fits, and those that even the last resort leaves.

    `likely` is the latter, `tokens` the whole request; both with an unknown model's margin only if the server would
    cut.
    """

    floor: Floor
    least: Floor
    likely: Floor
    tokens: int
    guard: Guard

    @classmethod
    def of(cls, sizing: Sizing, guard: Guard) -> _RequestFloor:
        state = _what_must_stay(sizing, guard, sizing.counter)
        least = likely = irreducible(state, Kit(counter=sizing.counter))
        tokens, unmargined = sizing.estimate.tokens + guard.reserve, likely_of(sizing.counter)
        if unmargined is not sizing.counter and not guard.cuts_silently:
            tokens -= sizing.estimate.margin
            likely = irreducible(_what_must_stay(sizing, guard, unmargined), Kit(counter=unmargined))
        return cls(floor_of(state, Kit(counter=sizing.counter), is_whole=True), least, likely, tokens, guard)

    @property
    def refused(self) -> Reason | None:
        return self._why(self.likely) if self.likely.tokens > self.guard.tried else None

    @property
    def may_fit(self) -> bool:
        """Are what must stay, and the request, too long only by a margin or a guess?"""
        return self.least.tokens > self.guard.limit and max(self.likely.tokens, self.tokens) <= self.guard.tried

    @property
    def is_all_there_is(self) -> bool:
        """Is what must stay more than a guessed window, and hardly less than the request?"""
        can_free = self.tokens - self.likely.tokens
        return self.least.tokens > self.guard.limit and can_free < self.guard.config.min_gain * self.tokens

    def stuck(self, tokens: int, level: Pressure) -> Reason | None:
        """Why a request that fits is not compacted. None if compaction can free enough, or must be tried."""
        too_little = tokens - self.floor.tokens < self.guard.config.min_gain * tokens
        if level is Pressure.OVERFLOW or not (too_little or self.floor.tokens > self.guard.threshold):
            return None
        return Reason(Why.STUCK, {"why": self._why(self.floor)})

    def _why(self, floor: Floor) -> Reason:
        return diagnosis(floor, limit=self.guard.limit, named=self.guard.told(self.guard.limit))


def _what_must_stay(sizing: Sizing, guard: Guard, counter: Counter) -> ContextState:
    """Of what a compaction would start from, what must stay."""
    context = sizing.context
    tools = offered_tools(context.dialog, compacted=True)
    state = ContextState(
        units=of_the_floor(context, counter),
        limit=guard.limit,
        overhead_tokens=overhead(context.dialog.llm, tools, counter) + guard.reserve + beside(context, counter),
        answer_tokens=guard.reserve,
        config=guard.config,
    )
    return with_unanswered(state, context)


def _relieved(dialog: Dialog, runs: list[CompactionRun]) -> bool:
    applied = [run for run in runs if run.status == Status.APPLIED and run.finished_at]
    if not applied:
        return False
    failed = Generation.objects.filter(prompt_leaf_id=dialog.current_leaf_id).order_by("-id").first()
    if failed is None or failed.finished_at is None:
        return False
    return bool(applied[-1].finished_at and applied[-1].finished_at >= failed.finished_at)
