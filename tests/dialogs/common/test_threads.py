"""Database work beside the event loop: what takes long has threads of its own."""

from __future__ import annotations

import asyncio
import os
import threading

import pytest
from asgiref.sync import async_to_sync

from dialogs.common.threads import THREADS_FOR_TOOLS, in_db, in_tools_thread

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
