"""Clients of a provider that takes one request at a time: they wait in its line with everybody else."""

from __future__ import annotations

import asyncio

import pytest
from asgiref.sync import sync_to_async

from dialogs.models import Dialog, Generation, Provider
from dialogs.providers import pool
from dialogs.providers.pool import slot
from dialogs.turns.writes.messages import request_stop
from tests.dialogs.api.conftest import Client, Play, said, text_of, user

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
CHORE = {"X-Dominds-Task": "title_generation"}


@pytest.fixture(autouse=True)
def one_at_a_time(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "ASK_EVERY_SECONDS", 0.05)
    provider.max_concurrent = 1
    provider.save()


async def place_in_line(place: int | None) -> None:
    async with asyncio.timeout(10):
        while not await Dialog.objects.filter(place_in_line=place).aexists():  # noqa: ASYNC110  a row is looked for
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("headers", [{}, CHORE], ids=["a-turn", "a-background-task"])
async def test_a_client_is_answered_as_soon_as_there_is_a_slot(
    client_of_alice: Client, provider: Provider, play: Play, headers: dict[str, str]
) -> None:
    read = await sync_to_async(play)(said(120, "Here."))

    async with slot(provider.name, most=1):
        asking = asyncio.create_task(client_of_alice.stream(user("Hello"), headers=headers))
        await asyncio.sleep(0.5)
        assert read() == []

    assert text_of(await asking) == "Here."


@pytest.mark.parametrize("stream", [True, False])
async def test_who_is_stopped_in_the_line_is_told_so(
    client_of_alice: Client, provider: Provider, play: Play, stream: bool
) -> None:
    await sync_to_async(play)(said(120, "Here."))

    async with slot(provider.name, most=1):
        asking = asyncio.create_task(client_of_alice.ask(user("Hi"), stream=stream))
        await place_in_line(1)
        await sync_to_async(request_stop)(dialog=await Dialog.objects.aget())
        came = await asking

    assert (came.status_code, came.json()["error"]["code"]) == (400, "answer_stopped")


async def test_a_client_that_leaves_the_line_is_not_asked_for_at_the_provider(
    client_of_alice: Client, provider: Provider, play: Play
) -> None:
    read = await sync_to_async(play)(said(120, "Here."))

    async with slot(provider.name, most=1):
        asking = asyncio.create_task(client_of_alice.ask(user("Hello")))
        await place_in_line(1)
        asking.cancel()
        await place_in_line(None)

    async with asyncio.timeout(10):
        while (await Dialog.objects.aget()).is_busy:  # noqa: ASYNC110  a row is looked for
            await asyncio.sleep(0.02)
    assert read() == []
    assert not await Generation.objects.aexists()
