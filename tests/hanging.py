"""A pytest plugin: a test that hangs fails, and says where each of its coroutines waits.

An alarm raises in the main thread. Ending the worker instead, as pytest's own `faulthandler_exit_on_timeout` does,
leaves the other workers waiting for the tests that it had taken, until the whole run is ended from outside.
"""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import signal
import traceback
from collections.abc import Generator, Iterator
from types import FrameType
from typing import Any

import pytest

# Seconds. The longest test that shares the machine takes about a minute; those with real processes get more.
LONGEST, LONGEST_OF_PROCESSES = 300, 1200
PORTION = 1_000


def portions(few: int, many: int) -> list[Any]:
    """Parameters `count, seed`: a few tries always, and many in `make test-long`, none of which takes as long as a
    test that hangs."""
    some = [pytest.param(few, 0, id="some")]
    return some + [
        pytest.param(min(PORTION, many), seed, marks=pytest.mark.long, id=f"{PORTION}-{seed}")
        for seed in range(1, max(1, many // PORTION) + 1)
    ]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, bool, bool]:
    alone = any(item.get_closest_marker(name) for name in ("stack", "e2e", "long"))
    signal.signal(signal.SIGALRM, _give_up)
    signal.alarm(LONGEST_OF_PROCESSES if alone else LONGEST)
    try:
        return (yield)
    finally:
        signal.alarm(0)


def _give_up(_number: int, _frame: FrameType | None) -> None:
    faulthandler.dump_traceback()
    waiting = [thing for thing in gc.get_objects() if issubclass(type(thing), asyncio.Task) and not thing.done()]
    pytest.fail("The test hangs. Its coroutines wait here:\n\n" + "\n".join(map(_described, waiting)))


def _described(task: asyncio.Task[Any]) -> str:
    frames = traceback.StackSummary.extract((frame, frame.f_lineno) for frame in _awaited(task.get_coro()))
    return f"{task.get_name()}, {task.get_coro()}\n{''.join(frames.format())}"


def _awaited(coroutine: Any) -> Iterator[FrameType]:
    """The frames of a suspended coroutine, the innermost last: a task's own stack has only the outermost."""
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "gi_frame", None)
        if frame is not None:
            yield frame
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "gi_yieldfrom", None)
