"""Decides the next action in a dialog. PURE: the first rule that applies wins; `run` performs the action.

A turn ends when an answer without calls is recorded, a person stops it, the driver gives up, or its rounds are used up.
Each of these clears `answer_due`, so no rule below applies twice without a new reason.
"""

from __future__ import annotations

from dataclasses import dataclass

from dialogs.turns.state import MAX_RESTARTS, Failure, Leaf, Policy, State, backoff, doubled
from health.compaction.terms.pressure import Pressure
from health.compaction.terms.reasons import Reason
from health.monitor.remediation import Due


@dataclass(frozen=True)
class Halt:
    """End the due answer without asking the provider: a person stopped it or threw the dialog away."""


@dataclass(frozen=True)
class GiveUp:
    """End the due answer because too many workers died while they made it."""


@dataclass(frozen=True)
class Wait:
    """Wait before the next try, then decide again."""

    seconds: float


@dataclass(frozen=True)
class RunTools:
    """Make the calls of the newest answer, then add their results. `refused`: make none, the results say that no rounds
    are left."""

    refused: bool = False


@dataclass(frozen=True)
class EndRounds:
    """End the turn of an agent that still calls tools after it was told that no rounds are left, or whose calls again
    and again cannot be made."""


@dataclass(frozen=True)
class CarryNotice:
    """Add the notice that the context is critical to the typed message that is answered next."""


@dataclass(frozen=True)
class InsertPrompt:
    """Ask the agent to write down what matters."""


@dataclass(frozen=True)
class ClearMind:
    """Open a new course without a call of the agent. `overflow`: because the prompt no longer fits."""

    overflow: bool = False


@dataclass(frozen=True)
class EndPrompts:
    """Rest: the agent got the most prompts to write down what matters, and its context is as full as before."""


@dataclass(frozen=True)
class Push:
    """Autonomous mode: send the push that asks the agent to go on towards the goal."""


@dataclass(frozen=True)
class EndRun:
    """Autonomous mode: end the run, as its maximum of generations is reached."""


@dataclass(frozen=True)
class PauseRun:
    """Autonomous mode: pause the run, as its owner's account was switched off."""


@dataclass(frozen=True)
class Compact:
    """Make room before the next request. `trigger` is one of `CompactionRun.Trigger`."""

    trigger: str


@dataclass(frozen=True)
class AwaitCompaction:
    """Wait with the next request for a run under way, started by hand or under review by a person."""


@dataclass(frozen=True)
class Refuse:
    """End the due answer: the request does not fit, and no compaction can make it fit."""

    why: Reason | None = None


@dataclass(frozen=True)
class NoteStuck:
    """Record once that compaction cannot free more, and why; the request is then made as it is."""

    trigger: str
    why: Reason


@dataclass(frozen=True)
class LookForLoop:
    """Check whether the agent repeats itself; an autonomous run is then paused."""


@dataclass(frozen=True)
class Generate:
    """Call the provider. `attempt` is 1 for the first try of an answer."""

    attempt: int


@dataclass(frozen=True)
class TakeQueued:
    """Begin the turn of the message that has waited longest."""


@dataclass(frozen=True)
class Rest:
    """Nothing is due, or only a person can go on."""


Action = (
    Halt
    | GiveUp
    | Wait
    | RunTools
    | EndRounds
    | CarryNotice
    | InsertPrompt
    | ClearMind
    | EndPrompts
    | Push
    | EndRun
    | PauseRun
    | Compact
    | AwaitCompaction
    | Refuse
    | NoteStuck
    | LookForLoop
    | Generate
    | TakeQueued
    | Rest
)


def decide(state: State, policy: Policy) -> Action:
    return _within_turn(state, policy) if state.answer_due else _between_turns(state, policy)


def _within_turn(state: State, policy: Policy) -> Action:
    if state.stop_requested or state.trashed:
        return Halt()
    if state.waiting_for_person:
        return Rest()
    if state.owner_off:
        return PauseRun()
    if state.run_used_up and (state.round_open or state.leaf is Leaf.RESULT):
        return EndRun()
    if state.round_open:
        most = policy.tool_rounds + policy.rounds_a_prompt * state.prompts
        return EndRounds() if state.rounds > most else RunTools(refused=state.rounds == most)
    if state.queued and state.leaf is Leaf.RESULT:
        # A message that a person typed meanwhile waits for the round under way, and for nothing else.
        return TakeQueued()
    return EndRounds() if state.in_vain > policy.rounds_in_vain else _next_request(state, policy)


def _next_request(state: State, policy: Policy) -> Action:
    """The round is over: what comes before the next request, or that request."""
    if state.overflowed and not (state.guard and state.guard.relieved):
        return _overflowed(state)
    if state.interruptions >= policy.interruptions:
        return GiveUp()
    if state.retry_in is not None and state.retry_in > 0:
        return Wait(state.retry_in)
    next_try = Generate(attempt=state.failures + state.interruptions + 1)
    # Compaction first: it cancels what the last reading made due.
    return _looking(state) or _filled(state) or _guarding(state) or _asking(state, policy) or next_try


def _looking(state: State) -> Action | None:
    return LookForLoop() if state.loop_check_due else None


def _overflowed(state: State) -> Action:
    """The provider refused the request as too long: compact the history and ask again, at most three times.

    If that does not help a new course begins. But a client gets the error, as does a person who switched compaction
    off, or whose last message alone is too long: a new course would not help, and they can shorten it.
    """
    guard = state.guard
    if guard is None:
        return Refuse() if state.client_driven else ClearMind(overflow=True)
    if guard.running:
        return AwaitCompaction()
    if guard.refused and guard.alone and not guard.off:
        return Refuse(guard.refused)
    if not guard.off and not guard.vain and guard.compactions < MAX_RESTARTS:
        return Compact("overflow")
    if guard.off or guard.alone or state.client_driven:
        return Refuse(guard.alone)
    return ClearMind(overflow=True)


def _filled(state: State) -> Action | None:
    """The last try filled the window before the answer had any text: make room by a compaction, if it can."""
    guard = state.guard
    if not state.filled or guard is None or guard.off or guard.relieved:
        return None
    if guard.vain or guard.compactions >= MAX_RESTARTS:
        return None
    return AwaitCompaction() if guard.running else Compact("stream")


def _guarding(state: State) -> Action | None:
    """What the guard does about the size of the next request, by estimates: the first rule that applies.

    1. A run is under way: wait for it.           2. No compaction can make any request fit: refuse, and say why.
    3. It is below the threshold: go on.          4. A person undid the compaction: go on, if it fits.
    5. Compaction is off: refuse only what the server would cut silently. The agent is reminded first: go on if it fits.
    6. Compacting freed nothing, or was done for this request or just before it: go on if it fits, else refuse.
    7. Compacting cannot free more: say so once.  8. Compact.
    """
    guard = state.guard
    if guard is None:
        return None
    if guard.running:
        return AwaitCompaction()
    if guard.refused:
        return Refuse(guard.refused)
    is_too_much = guard.pressure is Pressure.OVERFLOW
    # A person who undid a compaction does not want half an answer.
    held = guard.held and not state.continuing and not is_too_much
    if guard.pressure is Pressure.NORMAL or guard.off or held or (state.reminds and not is_too_much):
        return None
    if guard.compactions >= MAX_RESTARTS or guard.vain:
        return Refuse() if is_too_much else None
    if (guard.tried or guard.spared) and not is_too_much:
        return None
    if guard.stuck:
        return NoteStuck(_trigger(state), guard.stuck)
    return Compact(_trigger(state))


def _trigger(state: State) -> str:
    if state.continuing:
        return "stream"
    return "tool_result" if state.leaf is Leaf.RESULT else "pre_request"


def _asking(state: State, policy: Policy) -> Action | None:
    """What remediation does before the next generation of a turn; but a person's message is answered first."""
    if state.leaf is Leaf.TYPED:
        # Several generations may fail in a row: the notice is added and counted once.
        return CarryNotice() if state.due is Due.CRITICAL else None
    if state.leaf is Leaf.RESULT and (state.due is Due.CLEAR or state.prompts < policy.prompts):
        return _remediation(state)
    return None


def _remediation(state: State) -> Action | None:
    if state.due is Due.CLEAR:
        return ClearMind()
    return InsertPrompt() if state.due else None


def _between_turns(state: State, policy: Policy) -> Action:
    if state.trashed or (state.owner_off and state.paused):
        return Rest()
    if over := _run_over(state):
        return over
    if state.loop_check_due and not state.paused:
        return LookForLoop()
    if state.queued:
        # A typed message comes before any prompt and new course. In critical it gets the notice.
        return TakeQueued()
    if state.due is Due.CLEAR and not state.paused:
        return ClearMind()
    if state.paused:
        return Rest()
    if state.due and state.prompts >= policy.prompts:
        return EndPrompts()
    return _remediation(state) or (Push() if state.autonomous else Rest())


def _run_over(state: State) -> Action | None:
    if state.owner_off:
        return PauseRun()
    return EndRun() if state.run_used_up else None


def retry_delay(failure: Failure, *, failures: int, policy: Policy, jitter: float) -> float | None:
    """Seconds until the next try after `failures` of them, or None to give up.

    `jitter` in [0, 1) adds up to a quarter, so that many dialogs do not return at once.
    """
    if not failure.retryable:
        return None
    if failure.failing_for is not None:
        wait = (1 + jitter / 4) * doubled(failures=failures, base=policy.base_seconds, most=policy.outage_wait)
        return _within_outage(max(wait, failure.retry_after or 0.0), failing_for=failure.failing_for, policy=policy)
    if failures >= policy.attempts:
        return None
    seconds = backoff(failures=failures, base=policy.base_seconds, most=policy.max_seconds, wished=failure.retry_after)
    return None if seconds is None else seconds * (1 + jitter / 4)


def _within_outage(wait: float, *, failing_for: float, policy: Policy) -> float | None:
    """In autonomous mode: None if the next try would come after the longest outage."""
    return wait if failing_for + wait <= policy.outage_seconds else None
