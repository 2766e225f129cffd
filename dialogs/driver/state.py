"""What the driver knows when it decides: plain values read from the database. PURE."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """How often a provider failure is tried again, and how long the waits may grow. Seconds."""

    attempts: int = 3
    base_seconds: float = 2.0
    max_seconds: float = 60.0
    interruptions: int = 3


@dataclass(frozen=True, kw_only=True)
class State:
    """One dialog between two actions.

    `failures` and `interruptions` count the tries of the answer that is now due, not those of earlier ones.
    `retry_in` is what is left of the wait before the next try, in seconds; None when none is under way.
    """

    answer_due: bool
    stop_requested: bool = False
    trashed: bool = False
    failures: int = 0
    interruptions: int = 0
    retry_in: float | None = None
    queued: int = 0

    @property
    def has_work(self) -> bool:
        return self.answer_due or (self.queued > 0 and not self.trashed)


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A generation that failed. `retry_after` is the provider's own wish, in seconds."""

    retryable: bool
    retry_after: float | None = None
