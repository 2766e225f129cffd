"""Database work beside the event loop: what takes long has threads of its own."""

from __future__ import annotations

import asyncio
import os

import pytest
from asgiref.sync import async_to_sync

from dialogs.threads import in_db

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
