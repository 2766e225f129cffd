"""A few threads, of which the first that rests takes what is to be done: what can wait, after what cannot.

Each has a database connection of its own, which reads its pages again after another one has written. Where one thread
after the other takes its turn, as in a plain pool, that is a quarter of what SQLite does for a request.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from heapq import heappop, heappush
from itertools import count
from threading import Lock
from time import monotonic
from typing import Any

Work = Callable[[], Any]


class WarmThreads:
    def __init__(self, most: int, *, name: str) -> None:
        self._threads = [ThreadPoolExecutor(1, thread_name_prefix=f"{name}_{number}") for number in range(most)]
        self._resting = list(self._threads)
        # What none of them has taken yet, by the moment when it is due; of two that are due at once, the older first.
        self._waiting: list[tuple[float, int, Future[Any], Work]] = []
        self._numbers = count()
        self._lock = Lock()

    def submit(self, work: Work, *, patience: float = 0.0) -> Future[Any]:
        """What comes within so many seconds of `patience`, and has none itself, is done before it."""
        future: Future[Any] = Future()
        with self._lock:
            heappush(self._waiting, (monotonic() + patience, next(self._numbers), future, work))
            thread = min(self._resting, key=self._threads.index, default=None)
            if thread:
                self._resting.remove(thread)
        if thread:
            thread.submit(self._work_off, thread)
        return future

    def _work_off(self, thread: ThreadPoolExecutor) -> None:
        while task := self._next(thread):
            _do(*task)
            # Not kept until there is more to do.
            del task

    def _next(self, thread: ThreadPoolExecutor) -> tuple[Future[Any], Work] | None:
        with self._lock:
            if self._waiting:
                _due, _number, future, work = heappop(self._waiting)
                return future, work
            self._resting.append(thread)
            return None

    def end(self, last: Work) -> None:
        """Each does this last."""
        for thread in self._threads:
            thread.submit(last).result()
            thread.shutdown()


def _do(future: Future[Any], work: Work) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = work()
    except BaseException as error:  # whoever waits for it raises it
        future.set_exception(error)
    else:
        future.set_result(result)
