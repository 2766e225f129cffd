"""When a tool is tried again, after which waits, and when never. Nobody sleeps here."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialogs.agents.tools.base import ToolError, TransientError
from dialogs.driver.retries import next_wait, with_retries
from health.compaction.config import ContextConfig, RetryPolicy

AWAY = TransientError("The server is away.")
MOST = 0.999999999


class Tries:
    """A tool that fails with each of these and then answers; and what was waited for it."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.made: list[int] = []
        self.told: list[tuple[int, float]] = []
        self.slept: list[float] = []

    async def make(self, attempt: int) -> str:
        self.made.append(attempt)
        if self.failures:
            raise self.failures.pop(0)
        return "Done."

    async def on_wait(self, attempt: int, seconds: float) -> None:
        self.told.append((attempt, seconds))

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def run(self, policy: RetryPolicy, *, is_safe: bool = True, first: int = 1, after: float = 0) -> str:
        waiting = with_retries(
            self.make,
            policy=policy,
            is_safe=is_safe,
            on_wait=self.on_wait,
            first=first,
            after=after,
            sleep=self.sleep,
            chance=lambda: 1.0,
        )
        return asyncio.run(waiting)


def policy_of(*names: str) -> RetryPolicy:
    return ContextConfig().retries_of(*names)


def test_the_default_is_three_tries_with_waits_of_up_to_five_and_ten_seconds() -> None:
    tries = Tries(AWAY, AWAY)

    assert tries.run(policy_of("read_file")) == "Done."
    assert (tries.made, tries.slept) == ([1, 2, 3], [5, 10])
    assert tries.told == [(2, 5), (3, 10)]


def test_a_question_has_four_tries_with_waits_of_up_to_ten_twenty_and_forty_seconds() -> None:
    tries = Tries(AWAY, AWAY, AWAY)

    tries.run(policy_of("pager__askQuestion", "askQuestion"))

    assert tries.slept == [10, 20, 40]


def test_a_tools_own_numbers_go_by_the_first_name_that_has_some() -> None:
    one, two = RetryPolicy(max_attempts=1), RetryPolicy(max_attempts=2)
    config = ContextConfig(retry_per_tool=(("add", one), ("lab__add", two)))

    assert (config.retries_of("lab__add", "add"), config.retries_of("new__add", "add")) == (two, one)
    assert config.retries_of("other", "") == config.retry_default


def test_what_another_worker_left_waiting_goes_on_with_its_try_after_its_wait() -> None:
    tries = Tries(AWAY)

    assert tries.run(policy_of("read_file"), first=2, after=30) == "Done."
    assert (tries.made, tries.slept) == ([2, 3], [30, 10])


@pytest.mark.parametrize(
    ("failures", "words", "made", "slept"),
    [
        ([AWAY, AWAY, AWAY], r"^The server is away\. It was tried 3 times\.$", [1, 2, 3], [5, 10]),
        ([ToolError("There is no such file.")], r"^There is no such file\.$", [1], []),  # its answer
    ],
)
def test_after_the_last_try_it_fails_and_says_how_often_it_was_tried(
    failures: list[Exception], words: str, made: list[int], slept: list[float]
) -> None:
    tries = Tries(*failures)

    with pytest.raises(ToolError, match=words):
        tries.run(policy_of("read_file"))

    assert (tries.made, tries.slept) == (made, slept)


@given(st.integers(1, 5_000), st.floats(0, MOST), st.floats(0, 1e6), st.floats(0, 1e6))
def test_a_wait_lies_between_nothing_and_the_longest(attempt: int, chance: float, base: float, most: float) -> None:
    policy = RetryPolicy(max_attempts=10_000, backoff_base_seconds=base, max_delay_seconds=most)

    seconds = next_wait(AWAY, attempt=attempt, policy=policy, is_safe=True, chance=chance)

    assert seconds is not None
    assert 0 <= seconds <= most


def test_chance_spreads_the_waits_over_the_whole_of_the_base() -> None:
    def wait(chance: float) -> float | None:
        return next_wait(AWAY, attempt=2, policy=RetryPolicy(), is_safe=True, chance=chance)

    assert [wait(0), wait(0.5), wait(MOST)] == [0, 5, pytest.approx(10)]


def test_whoever_cancels_does_not_wait() -> None:
    tries = Tries(AWAY)

    async def cancelled_while_waiting() -> None:
        begun = asyncio.Event()

        async def for_ever(_seconds: float) -> None:
            begun.set()
            await asyncio.Event().wait()

        trying = asyncio.create_task(
            with_retries(tries.make, policy=RetryPolicy(), is_safe=True, on_wait=tries.on_wait, sleep=for_ever)
        )
        await begun.wait()
        trying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await trying

    asyncio.run(cancelled_while_waiting())

    assert tries.made == [1]
