"""Database work from async code: on Channels' thread, or on threads of our own that keep their connections.

Channels opens a connection for each call and closes it again (`CONN_MAX_AGE` is 0). That would cost `/v1` more than all
else it does, and a worker of turns a seventh of its time, so whoever drives a turn does so inside `own_threads()`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import partial, wraps
from typing import ParamSpec, TypeVar

from channels.db import DatabaseSyncToAsync
from django.db import connections

from dialogs.common.warm_threads import WarmThreads

# SQLite has one writer at a time, and Python one thread that computes: more threads only wait for each other.
THREADS = 2
# A worker drives many people's dialogs: there a row that is locked must not hold up the others.
THREADS_OF_WORKER = 8
# Compactions that no worker takes up, at once. Each may wait minutes for a model; more of them stand in line.
THREADS_BESIDE = 8

Args = ParamSpec("Args")
Result = TypeVar("Result")

# So long all else waits for what a client must wait for before it hears a word, where there is much of that.
PATIENCE_SECONDS = 1.0
# Tools that read files: a folder that hangs must not take the threads on which others look up addresses.
THREADS_FOR_TOOLS = 8

_pool: WarmThreads | None = None
_beside: ThreadPoolExecutor | None = None
_tools = ThreadPoolExecutor(max_workers=THREADS_FOR_TOOLS, thread_name_prefix="tools")
_home: ContextVar[asyncio.AbstractEventLoop | None] = ContextVar("home", default=None)


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
    """The loop on whose behalf database work is being done; None outside `own_threads()`."""
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


async def in_tools_thread(function: Callable[[], Result]) -> Result:
    """Without the database. Not on one of asyncio's own threads, which everybody in the process shares."""
    return await asyncio.get_running_loop().run_in_executor(_tools, copy_context().run, function)


def _connected(function: Callable[Args, Result]) -> Callable[Args, Result]:
    """The function with database connections that are checked before it and, after a fault, closed."""

    @wraps(function)
    def called(*args: Args.args, **kwargs: Args.kwargs) -> Result:
        for connection in connections.all(initialized_only=True):
            connection.health_check_enabled = True  # type: ignore[attr-defined]  # the stubs lack both
            connection.health_check_done = False  # type: ignore[attr-defined]
        try:
            return function(*args, **kwargs)
        finally:
            for connection in connections.all(initialized_only=True):
                if connection.errors_occurred:
                    connection.close()

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
    if _pool:
        _pool.end(connections.close_all)
    if _beside:
        list(_beside.map(lambda _number: connections.close_all(), range(8 * THREADS_BESIDE)))
        _beside.shutdown()
    _pool = _beside = None
