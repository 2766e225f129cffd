"""What happens next in a dialog. PURE: rules in order, the first that fits wins; the shell performs.

A turn ends in exactly one way: an answer without calls is recorded, a person stops it, it is given up, or its
rounds are used up. Each clears `answer_due`, so no rule below can fire twice without a new reason.
"""

from __future__ import annotations

from dataclasses import dataclass

from dialogs.driver.backoff import backoff
from dialogs.driver.state import Failure, Leaf, Policy, State
from health.compaction.pressure import Pressure
from health.compaction.reasons import Reason
from health.monitor.remediation import Due

MOST_COMPACTIONS = 3


@dataclass(frozen=True)
class Halt:
    """End the due answer without asking the provider: a person stopped it or threw the dialog away."""


@dataclass(frozen=True)
class GiveUp:
    """End the due answer because workers died over it too often."""


@dataclass(frozen=True)
class Wait:
    """Let the provider recover, then look again."""

    seconds: float


@dataclass(frozen=True)
class RunTools:
    """Make the calls of the newest answer, then add their results. `refused`: say that there are no more rounds."""

    refused: bool = False


@dataclass(frozen=True)
class EndRounds:
    """End the turn of an agent that goes on calling tools although it was told that there are no more rounds."""


@dataclass(frozen=True)
class CarryNotice:
    """Let the typed message that is answered next carry the notice that the context is critical."""


@dataclass(frozen=True)
class InsertPrompt:
    """Ask the agent to write down what matters."""


@dataclass(frozen=True)
class ClearMind:
    """Open a new course without the agent's doing. `overflow`: the prompt no longer fits."""

    overflow: bool = False


@dataclass(frozen=True)
class Push:
    """Autonomous mode: go on towards the goal."""


@dataclass(frozen=True)
class EndRun:
    """Autonomous mode: the most generations are reached."""


@dataclass(frozen=True)
class Compact:
    """Make room before the next request. `trigger` is one of `CompactionRun.Trigger`."""

    trigger: str


@dataclass(frozen=True)
class AwaitCompaction:
    """A run is under way, by hand or looked through by a person: the next request waits for it."""


@dataclass(frozen=True)
class Refuse:
    """End the due answer: the request does not fit, and no compaction can make it fit."""

    why: Reason | None = None


@dataclass(frozen=True)
class LookForLoop:
    """See whether the agent goes round in circles; one that goes on by itself rests then."""


@dataclass(frozen=True)
class Generate:
    """Ask the provider. `attempt` is 1 for the first try of an answer."""

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
    | Push
    | EndRun
    | Compact
    | AwaitCompaction
    | Refuse
    | LookForLoop
    | Generate
    | TakeQueued
    | Rest
)


def decide(state: State, policy: Policy) -> Action:
    return _within_turn(state, policy) if state.answer_due else _between_turns(state)


def _within_turn(state: State, policy: Policy) -> Action:
    if state.stop_requested or state.trashed:
        return Halt()
    if state.waiting_for_person:
        return Rest()
    if state.run_used_up and (state.round_open or state.leaf is Leaf.RESULT):
        return EndRun()
    if state.round_open:
        return EndRounds() if state.rounds > policy.tool_rounds else RunTools(state.rounds == policy.tool_rounds)
    if state.overflowed and not (state.guard and state.guard.relieved):
        return _overflowed(state)
    if state.interruptions >= policy.interruptions:
        return GiveUp()
    if state.retry_in is not None and state.retry_in > 0:
        return Wait(state.retry_in)
    next_try = Generate(attempt=state.failures + state.interruptions + 1)
    return _looking(state) or _asking(state) or _guarding(state) or next_try


def _looking(state: State) -> Action | None:
    return LookForLoop() if state.loop_check_due else None


def _overflowed(state: State) -> Action:
    """Who is guarded keeps the course; where that has not helped, and for anybody else, a new one begins."""
    guard = state.guard
    if guard is None or guard.tried or guard.compactions >= MOST_COMPACTIONS:
        return Refuse() if state.client_driven else ClearMind(overflow=True)
    return AwaitCompaction() if guard.running else Compact("overflow")


def _guarding(state: State) -> Action | None:
    """What the guard does before a request, by estimates. At most three compactions in one turn, and none twice."""
    guard = state.guard
    if guard is None:
        return None
    if guard.running:
        return AwaitCompaction()
    if guard.refused:
        return Refuse(guard.refused)
    if guard.pressure is Pressure.NORMAL or (guard.held and guard.pressure is not Pressure.OVERFLOW):
        return None
    if guard.tried or guard.compactions >= MOST_COMPACTIONS:
        return Refuse() if guard.pressure is Pressure.OVERFLOW else None
    return Compact(_trigger(state))


def _trigger(state: State) -> str:
    if state.continuing:
        return "stream"
    return "tool_result" if state.leaf is Leaf.RESULT else "pre_request"


def _asking(state: State) -> Action | None:
    """What remediation does before the next generation of a turn. A person's message is answered first."""
    if state.leaf is Leaf.TYPED:
        # Generation after generation may fail: the notice is carried, and counted, once.
        return CarryNotice() if state.due is Due.CRITICAL else None
    if state.leaf is Leaf.RESULT:
        return _remediation(state)
    return None


def _remediation(state: State) -> Action | None:
    if state.due is Due.CLEAR:
        return ClearMind()
    return InsertPrompt() if state.due else None


def _between_turns(state: State) -> Action:
    if state.trashed:
        return Rest()
    if state.run_used_up:
        return EndRun()
    if state.loop_check_due and not state.paused:
        return LookForLoop()
    if state.due is Due.CLEAR and not state.paused:
        return ClearMind()
    if state.queued:
        # Before any prompt: in critical it carries the notice, and a caution prompt can wait.
        return TakeQueued()
    if state.paused:
        return Rest()
    return _remediation(state) or (Push() if state.autonomous else Rest())


def retry_delay(failure: Failure, *, failures: int, policy: Policy, jitter: float) -> float | None:
    """Seconds until the next try after `failures` of them, or None to give up.

    `jitter` in [0, 1) adds up to a quarter, so that many dialogs do not return at once.
    """
    if not failure.retryable or failures >= policy.attempts:
        return None
    seconds = backoff(failures=failures, base=policy.base_seconds, most=policy.max_seconds, wished=failure.retry_after)
    return None if seconds is None else seconds * (1 + jitter / 4)
