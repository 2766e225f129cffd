"""What happens next in a dialog. PURE: rules in order, the first that fits wins; the shell performs.

A turn ends in exactly one way: an answer is recorded, a person stops it, or it is given up. Each clears
`answer_due`, so no rule below can fire twice without a new reason.
"""

from __future__ import annotations

from dataclasses import dataclass

from dialogs.driver.state import Failure, RetryPolicy, State


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
class Generate:
    """Ask the provider. `attempt` is 1 for the first try of an answer."""

    attempt: int


@dataclass(frozen=True)
class TakeQueued:
    """Begin the turn of the message that has waited longest."""


@dataclass(frozen=True)
class Rest:
    """Nothing is due."""


Action = Halt | GiveUp | Wait | Generate | TakeQueued | Rest


def decide(state: State, policy: RetryPolicy) -> Action:
    if not state.answer_due:
        return TakeQueued() if state.has_work else Rest()
    if state.stop_requested or state.trashed:
        return Halt()
    if state.interruptions >= policy.interruptions:
        return GiveUp()
    if state.retry_in is not None and state.retry_in > 0:
        return Wait(state.retry_in)
    return Generate(attempt=state.failures + state.interruptions + 1)


def retry_delay(failure: Failure, *, failures: int, policy: RetryPolicy, jitter: float) -> float | None:
    """Seconds until the next try after `failures` of them, or None to give up.

    Doubles from the base; `jitter` in [0, 1) adds up to a quarter, so that many dialogs do not return at
    once. A provider's Retry-After is never undercut; one longer than the longest wait ends the tries.
    """
    if not failure.retryable or failures >= policy.attempts:
        return None
    doubled = min(policy.max_seconds, policy.base_seconds * 2 ** (failures - 1))
    wished = failure.retry_after or 0.0
    if wished > policy.max_seconds:
        return None
    return max(doubled, wished) * (1 + jitter / 4)
