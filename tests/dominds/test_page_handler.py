"""A page takes one thread, once, and not one for each middleware."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from asgiref.sync import SyncToAsync, async_to_sync
from channels.testing import HttpCommunicator
from django.db import connections

from dialogs.common import threads
from dialogs.common.threads import on_lent_thread
from dominds.asgi import application

pytestmark = pytest.mark.django_db(transaction=True)
# What Django does when a request begins, the page, and what it does when the response is sent.
TRIPS = 3


async def signing_in() -> int:
    browser = HttpCommunicator(application, "GET", "/login/", headers=[(b"host", b"127.0.0.1")])
    answer: dict[str, Any] = await browser.get_response(timeout=20)
    await browser.wait(timeout=20)
    return int(answer["status"])


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The threads on which something was done for an event loop."""
    found: list[str] = []
    real = SyncToAsync.thread_handler

    def noted(self: Any, *args: Any, **kwargs: Any) -> Any:
        found.append(threading.current_thread().name)
        return real(self, *args, **kwargs)

    monkeypatch.setattr(SyncToAsync, "thread_handler", noted)
    return found


def test_a_page_is_made_on_one_thread_in_one_go(trips: list[str]) -> None:
    assert async_to_sync(signing_in)() == 200

    assert len(trips) == TRIPS
    assert len(set(trips)) == 1


def test_the_next_page_has_the_thread_of_the_one_before(trips: list[str]) -> None:
    async def two() -> None:
        await signing_in()
        await signing_in()

    async_to_sync(two)()

    assert len(trips) == 2 * TRIPS
    assert len(set(trips)) == 1


def test_who_asks_while_another_is_answered_waits_for_no_thread() -> None:
    both = threading.Barrier(2, timeout=20)

    async def at_once() -> list[int]:
        return await asyncio.gather(*(on_lent_thread(both.wait)() for _one in range(2)))

    assert sorted(async_to_sync(at_once)()) == [0, 1]


def test_more_threads_than_may_rest_end_and_close_their_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "MOST_RESTING", 0)

    def asked() -> Any:
        connections["default"].ensure_connection()
        opened.append(connections["default"])
        return threading.current_thread()

    opened: list[Any] = []
    monkeypatch.setitem(connections["default"].settings_dict, "CONN_MAX_AGE", None)
    thread = async_to_sync(on_lent_thread(asked))()
    thread.join(10)

    assert not thread.is_alive()
    assert opened[0].connection is None
