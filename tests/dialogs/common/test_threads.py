"""Database work beside the event loop: what takes long has threads of its own."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from functools import partial
from threading import Event, get_ident
from time import sleep

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import connections

from dialogs.common import threads as threads_module
from dialogs.common.threads import THREADS_FOR_TOOLS, WarmThreads, in_db, in_tools_thread, own_threads

MANY = 8 + (os.cpu_count() or 1)


def asks_a_model() -> str:
    """As a compaction does: it waits in its thread for a client that itself needs a thread for a moment."""
    return async_to_sync(_asked)()


async def _asked() -> str:
    return await asyncio.to_thread(lambda: "answered")


@pytest.mark.django_db(transaction=True)
async def test_compactions_at_once_do_not_wait_for_each_others_threads() -> None:
    async with asyncio.timeout(20):
        answers = await asyncio.gather(*(in_db(asks_a_model, beside=True)() for _ in range(MANY)))

    assert answers == ["answered"] * MANY


async def test_tools_that_hang_hold_up_nobody_else() -> None:
    over = threading.Event()
    hanging = [asyncio.ensure_future(in_tools_thread(over.wait)) for _ in range(2 * THREADS_FOR_TOOLS)]
    try:
        async with asyncio.timeout(20):
            assert await asyncio.to_thread(lambda: "answered") == "answered"
    finally:
        over.set()
        await asyncio.gather(*hanging)


@pytest.fixture
def threads() -> Iterator[WarmThreads]:
    made = WarmThreads(2, name="test")
    yield made
    made.end(lambda: None)


def test_one_thing_after_another_is_done_by_the_same_thread(threads: WarmThreads) -> None:
    assert len({threads.submit(get_ident).result(5) for _each in range(20)}) == 1


def test_whoever_is_free_takes_what_waits(threads: WarmThreads) -> None:
    first, second = Event(), Event()
    threads.submit(lambda: first.wait(5))
    busy = threads.submit(lambda: (second.wait(5), get_ident())[1])
    waiting = threads.submit(get_ident)

    assert not waiting.done()
    second.set()

    assert waiting.result(5) == busy.result(5)
    first.set()


@pytest.fixture
def thread() -> Iterator[WarmThreads]:
    made = WarmThreads(1, name="test")
    yield made
    made.end(lambda: None)


def test_what_cannot_wait_is_done_before_what_can(thread: WarmThreads) -> None:
    may, done = Event(), list[str]()
    thread.submit(lambda: may.wait(5))
    last = [thread.submit(partial(done.append, f"kept {number}"), patience=60) for number in range(2)][-1]
    for number in range(2):
        thread.submit(partial(done.append, f"asked {number}"))
    may.set()
    last.result(5)

    assert done == ["asked 0", "asked 1", "kept 0", "kept 1"]


def test_what_can_wait_does_not_wait_for_ever(thread: WarmThreads) -> None:
    may, done = Event(), list[str]()
    thread.submit(lambda: may.wait(5))
    thread.submit(lambda: done.append("kept"), patience=0.01)
    sleep(0.02)
    last = thread.submit(lambda: done.append("asked"))
    may.set()
    last.result(5)

    assert done == ["kept", "asked"]


def test_a_failure_is_told_to_who_waits_for_it_and_ends_nothing(threads: WarmThreads) -> None:
    def fails() -> None:
        raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space"):
        threads.submit(fails).result(5)
    assert threads.submit(lambda: "done").result(5) == "done"


def test_what_nobody_waits_for_any_more_is_not_begun(threads: WarmThreads) -> None:
    may, done = Event(), list[str]()
    for _each in range(2):
        threads.submit(lambda: may.wait(5))
    left, kept = threads.submit(lambda: done.append("left")), threads.submit(lambda: done.append("kept"))

    assert left.cancel()
    may.set()
    kept.result(5)

    assert done == ["kept"]
    with pytest.raises(CancelledError):
        left.result()


def test_each_does_the_last_thing_after_all_else() -> None:
    threads, may, done = WarmThreads(2, name="test"), Event(), list[int]()
    for _each in range(2):
        threads.submit(lambda: may.wait(5))
    threads.submit(lambda: done.append(0))
    may.set()

    threads.end(lambda: done.append(get_ident()))

    assert done[0] == 0
    assert len(set(done)) == 3


@pytest.mark.django_db(transaction=True)
async def test_a_connection_that_has_just_answered_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[object]()

    def is_usable(connection: object) -> bool:
        asked.append(connection)
        return True

    monkeypatch.setattr(type(connections["default"]), "is_usable", is_usable)

    with own_threads():
        for _each in range(3):
            await in_db(User.objects.exists)()
        first = len(asked)
        monkeypatch.setattr(threads_module, "TRUSTED_SECONDS", 0.0)
        await in_db(User.objects.exists)()

    assert (first, len(asked)) == (0, 1)
