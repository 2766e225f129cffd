"""Tries a call again after a failure that may pass, with a longer wait each time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from dialogs.agents.tools.base import ToolError, TransientError
from dialogs.turns.state import backoff
from health.compaction.config import RetryPolicy

Result = TypeVar("Result")


NOT_KNOWN = "Whether it did anything is not known, so it was not tried again."


def next_wait(
    error: TransientError, *, attempt: int, policy: RetryPolicy, is_safe: bool, chance: float
) -> float | None:
    """Seconds until the next try after this one failed, or None to give up.

    The wait is the backoff times `chance`, in [0, 1), so that calls that failed together do not retry together.
    """
    if attempt >= policy.max_attempts or not (is_safe or error.unsent):
        return None
    return backoff(
        failures=attempt,
        base=policy.backoff_base_seconds,
        most=policy.max_delay_seconds,
        wished=error.retry_after,
        share=chance,
    )


async def with_retries(
    make: Callable[[int], Awaitable[Result]],
    *,
    policy: RetryPolicy,
    is_safe: bool,
    on_wait: Callable[[int, float], Awaitable[None]],
    first: int = 1,
    after: float = 0.0,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    chance: Callable[[], float] = random.random,
) -> Result:
    """Call `make` with the number of the try until one succeeds. Before each wait `on_wait` gets the number of the next
    try and the seconds. Raises ToolError.

    If a worker died during an earlier try, `first` is the number of the try that is due, `after` so many seconds.
    """
    attempt = first
    if after:
        await sleep(after)
    while True:
        try:
            return await make(attempt)
        except TransientError as error:
            seconds = next_wait(error, attempt=attempt, policy=policy, is_safe=is_safe, chance=chance())
            if seconds is None:
                raise ToolError(_last_words(error, attempt=attempt, is_safe=is_safe)) from error
        attempt += 1
        await on_wait(attempt, seconds)
        await sleep(seconds)


def _last_words(error: TransientError, *, attempt: int, is_safe: bool) -> str:
    if not (is_safe or error.unsent):
        return f"{error} {NOT_KNOWN}"
    return f"{error} It was tried {attempt} times." if attempt > 1 else str(error)
