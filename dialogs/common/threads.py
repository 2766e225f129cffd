"""Database work from async code: on Channels' thread, or on our own threads, which keep their connections.

Channels opens and closes a connection for each call (`CONN_MAX_AGE` is 0). That would cost `/v1` more than all its
other work, and a turn worker a seventh of its time, so turns are driven inside `own_threads()`. `persistent` repeats
such work while the database is away or locked.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar, copy_context
from functools import partial
from heapq import heappop, heappush
from itertools import count
from math import inf
from threading import Lock
from time import monotonic
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import ThreadSensitiveContext
from channels.db import DatabaseSyncToAsync
from django.db import InterfaceError, OperationalError, connections

from dominds.prepared import cache_database

Work = Callable[[], Any]
# SQLite has one writer at a time, and Python one thread that computes: more threads only wait for each other.
THREADS = 2
# A worker drives many people's dialogs: a locked row must not block the others.
THREADS_OF_WORKER = 8
# Compactions that no worker takes up, at once. Each may wait minutes for a model; more of them stand in line.
THREADS_BESIDE = 8

Args = ParamSpec("Args")
Result = TypeVar("Result")

# Other work waits at most so long behind work that a client's first word depends on.
PATIENCE_SECONDS = 1.0
# A connection that answered so lately is not asked whether it still does: if it ended since, that is an error as it is
# when it ends a moment later.
TRUSTED_SECONDS = 1.0
ANSWERED = "dominds_answered"
# Tools that read files: a folder that hangs must not take the threads on which others look up addresses.
THREADS_FOR_TOOLS = 8
# Of those that were lent to pages: more are started where all are at work.
MOST_RESTING = 8

_pool: WarmThreads | None = None
_beside: ThreadPoolExecutor | None = None
_resting: list[ThreadPoolExecutor] = []
_tools = ThreadPoolExecutor(max_workers=THREADS_FOR_TOOLS, thread_name_prefix="tools")
_home: ContextVar[asyncio.AbstractEventLoop | None] = ContextVar("home", default=None)


class WarmThreads:
    """A thread pool with priorities in which the first idle thread takes the next work.

    Each thread has its own database connection, which reads its pages again after another connection has written. With
    threads in rotation, as in a plain pool, that is a quarter of SQLite's work for a request.
    """

    def __init__(self, most: int, *, name: str) -> None:
        self._threads = [ThreadPoolExecutor(1, thread_name_prefix=f"{name}_{number}") for number in range(most)]
        self._resting = list(self._threads)
        # Work that no thread has taken yet, by due time; of two with the same due time, the older first.
        self._waiting: list[tuple[float, int, Future[Any], Work]] = []
        self._numbers = count()
        self._lock = Lock()

    def submit(self, work: Work, *, patience: float = 0.0) -> Future[Any]:
        """Queue work. Work without patience that comes within the next `patience` seconds is done before this."""
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
            # Drop the reference: the next work may come hours later.
            del task

    def _next(self, thread: ThreadPoolExecutor) -> tuple[Future[Any], Work] | None:
        with self._lock:
            if self._waiting:
                _due, _number, future, work = heappop(self._waiting)
                return future, work
            self._resting.append(thread)
            return None

    def end(self, last: Work) -> None:
        """End all threads; each runs this function last."""
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


@contextmanager
def own_threads(most: int = THREADS) -> Iterator[None]:
    """Inside, and in every task begun inside, `in_db` keeps its connections. `most` threads has this process, as the
    first to need them says."""
    _threads(most)
    token = _home.set(asyncio.get_running_loop())
    try:
        yield
    finally:
        _home.reset(token)


def home() -> asyncio.AbstractEventLoop | None:
    """The event loop whose database work this thread does; None outside `own_threads()`."""
    return _home.get()


def in_db(
    function: Callable[Args, Result], *, beside: bool = False, first: bool = False
) -> Callable[Args, Awaitable[Result]]:
    """`function`, to be awaited. `first`: before all else that waits for a thread. `beside`: it takes long, so it gets
    a thread that nobody else waits for.

    That is not one of asyncio's own: what runs there may wait for a client that needs one of those for a moment.
    """

    async def called(*args: Args.args, **kwargs: Args.kwargs) -> Result:
        if beside:
            return await DatabaseSyncToAsync(function, thread_sensitive=False, executor=_threads_beside())(
                *args, **kwargs
            )
        if _home.get() is None:
            return await DatabaseSyncToAsync(function, thread_sensitive=True)(*args, **kwargs)
        work = partial(copy_context().run, _connected(function), *args, **kwargs)
        begun = _threads().submit(work, patience=0.0 if first else PATIENCE_SECONDS)
        result: Result = await asyncio.wrap_future(begun)
        return result

    return called


@asynccontextmanager
async def lent_thread() -> AsyncIterator[None]:
    """Inside, all synchronous work of Django and Channels runs on one reused thread, with its kept connection.

    By default they start a thread for each request, and another that ends it.
    """
    thread = _resting.pop() if _resting else ThreadPoolExecutor(1, thread_name_prefix="lent")
    try:
        async with ThreadSensitiveContext(executor=thread):
            yield
    finally:
        if len(_resting) < MOST_RESTING:
            _resting.append(thread)
        else:
            thread.submit(connections.close_all)
            thread.shutdown(wait=False)


def on_lent_thread(function: Callable[Args, Result]) -> Callable[Args, Coroutine[Any, Any, Result]]:
    """`function`, which asks the database for a browser, to be awaited."""
    in_thread = DatabaseSyncToAsync(function)

    async def called(*args: Args.args, **kwargs: Args.kwargs) -> Result:
        async with lent_thread():
            result: Result = await in_thread(*args, **kwargs)
        return result

    return called


async def in_tools_thread(function: Callable[[], Result]) -> Result:
    """Run a function that needs no database on a thread for tools: asyncio's own threads are shared by everybody in the
    process."""
    return await asyncio.get_running_loop().run_in_executor(_tools, copy_context().run, function)


def _connected(function: Callable[Args, Result]) -> Callable[Args, Result]:
    """The function with a database connection that is checked before it and, after a fault, closed."""

    def called(*args: Args.args, **kwargs: Args.kwargs) -> Result:
        connection = cache_database()
        connection.health_check_enabled = True  # type: ignore[attr-defined]  # the stubs lack both
        is_trusted = monotonic() - connection.__dict__.get(ANSWERED, -inf) < TRUSTED_SECONDS
        connection.health_check_done = is_trusted  # type: ignore[attr-defined]
        try:
            return function(*args, **kwargs)
        finally:
            if connection.errors_occurred:
                connection.close()
            else:
                connection.__dict__[ANSWERED] = monotonic()

    return called


def _threads(most: int = THREADS) -> WarmThreads:
    global _pool  # one for the process
    if _pool is None:
        _pool = WarmThreads(most, name="in_db")
    return _pool


def _threads_beside() -> ThreadPoolExecutor:
    global _beside  # one for the process
    if _beside is None:
        _beside = ThreadPoolExecutor(max_workers=THREADS_BESIDE, thread_name_prefix="beside")
    return _beside


def close_threads() -> None:
    """End the threads and with them their connections. For tests: a database in use cannot be dropped or replaced."""
    global _pool, _beside
    for thread in _resting:
        thread.submit(connections.close_all).result()
    if _pool:
        _pool.end(connections.close_all)
    if _beside:
        list(_beside.map(lambda _number: connections.close_all(), range(8 * THREADS_BESIDE)))
        _beside.shutdown()
    _pool = _beside = None


logger = logging.getLogger(__name__)
AGAIN_SECONDS = 1.0
_is_away = False


def persistent(
    work: Callable[Args, Awaitable[Result]],
    *,
    seconds: float = inf,
    told: Callable[[Exception], None] = lambda _error: None,
) -> Callable[Args, Awaitable[Result]]:
    """Run `work`, which uses the database; while that is away, locked or full, run it again, for so many seconds. Each
    error is `told`."""

    async def called(*args: Args.args, **kwargs: Args.kwargs) -> Result:
        until, has_failed = monotonic() + seconds, False
        while True:
            try:
                result = await work(*args, **kwargs)
            except (InterfaceError, OperationalError) as error:
                if monotonic() >= until:
                    raise
                has_failed = True
                _note(error)
                told(error)
                await asyncio.sleep(AGAIN_SECONDS)
            else:
                # A full disk fails writes only: reads go on.
                if has_failed:
                    _note(None)
                return result

    return called


def _note(error: Exception | None) -> None:
    """Log once that the database is away, and once that it is back, however many answers find it so."""
    global _is_away  # one database for the process
    if error and not _is_away:
        first, *_rest = str(error).splitlines() or [""]
        logger.warning("The database is away or locked; answers that are under way go on: %s", first)
    elif _is_away and not error:
        logger.warning("The database answers again")
    _is_away = error is not None
