"""Redis goes and comes back, under tabs that are open and tabs that come: each is told of changes again."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import pytest
import redis.asyncio as redis
from channels.layers import get_channel_layer
from channels_redis.core import RedisChannelLayer
from django.conf import settings
from django.contrib.auth.models import User

from dialogs.common.broadcast import group_name, stream_state
from dialogs.common.channel_layer import ChannelLayer
from dialogs.models import Dialog
from dialogs.pages import consumers
from tests.dialogs.pages.test_consumers import cookie_of, socket_to, until, watching

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def alices(alice: User) -> str:
    return cookie_of(alice)


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "LOOK_EVERY_SECONDS", 0.2)


async def rename(dialog: Dialog) -> None:
    """Without an event, so that only a look can tell."""
    await Dialog.objects.filter(pk=dialog.pk).aupdate(title="Renamed", version=10**6)


async def end_receiving(server: redis.Redis) -> int:
    """End the connections on which a layer waits for events; how many there were."""
    waiting = [client["id"] for client in await server.client_list() if client["cmd"] == "bzpopmin"]
    return sum([await server.client_kill_filter(_id=client) for client in waiting])


async def test_an_open_tab_outlives_its_connection_to_redis(dialog: Dialog, alices: str) -> None:
    async with watching(dialog, alices) as socket, redis.from_url(settings.REDIS_URL) as server:
        await until(socket, 'id="transcript"')

        async with asyncio.timeout(5):
            while not await end_receiving(server):
                pass
        await rename(dialog)

        await until(socket, "Renamed")


async def test_connections_that_redis_has_closed_meanwhile_fail_nobody() -> None:
    """A look that failed for that would leave its tab behind for five seconds more."""
    layer = ChannelLayer(**settings.CHANNEL_LAYERS["default"]["CONFIG"])
    channels = [await layer.new_channel() for _ in range(5)]
    async with redis.from_url(settings.REDIS_URL) as server:
        others = {client["id"] for client in await server.client_list()}
        await asyncio.gather(*(layer.group_add("all", channel) for channel in channels))
        for client in await server.client_list():
            if client["id"] not in others:
                await server.client_kill_filter(_id=client["id"])

    await asyncio.gather(*(layer.group_add("all", channel) for channel in channels))

    await layer.close_pools()


async def refused(*_what: Any) -> None:
    raise redis.ConnectionError("Connection refused.")


async def test_an_open_tab_outlives_a_redis_that_is_away(
    dialog: Dialog, alices: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with watching(dialog, alices) as socket:
        await until(socket, 'id="transcript"')

        with monkeypatch.context() as patch:
            patch.setattr(ChannelLayer, "receive_single", refused)
            await asyncio.sleep(0.7)
        await rename(dialog)

        await until(socket, "Renamed")


async def test_a_tab_that_comes_while_redis_is_away_is_told_of_changes_later(
    dialog: Dialog, alices: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(RedisChannelLayer, "group_add", refused)
        async with watching(dialog, alices) as socket:
            await until(socket, 'id="transcript"')
            await asyncio.sleep(0.3)
            patch.undo()
            await rename(dialog)

            await until(socket, "Renamed")


async def test_nobody_looks_for_a_tab_whose_consumer_failed(
    dialog: Dialog, alices: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(*_what: Any) -> None:
        raise RuntimeError("No database")

    socket = socket_to(dialog.pk, alices)
    await socket.connect()
    await until(socket, 'id="transcript"')
    monkeypatch.setattr(consumers, "render_dialog", failing)
    await rename(dialog)

    with pytest.raises(RuntimeError, match="No database"):
        await socket.receive_output(timeout=2)
    await asyncio.sleep(0.5)

    async with redis.from_url(settings.REDIS_URL) as server:
        assert await server.zcard(f"asgi:group:{group_name(dialog.pk)}") == 0


async def test_a_receiver_ends_when_it_is_cancelled_even_if_the_redis_client_forgets_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As it does, now and then, before Python 3.12: Channels would wait for ever, and so would the page."""
    forgotten = asyncio.Event()

    async def forgetful(*_what: Any) -> None:
        while not forgotten.is_set():
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                forgotten.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(ChannelLayer, "receive_single", forgetful)
    layer = get_channel_layer()
    assert layer is not None
    receiving = asyncio.create_task(layer.receive(await layer.new_channel()))
    await asyncio.sleep(0.1)

    receiving.cancel()
    await asyncio.wait({receiving}, timeout=2)

    assert forgotten.is_set()
    assert receiving.cancelled()


async def test_for_an_event_that_a_tab_hears_redis_is_asked_three_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is there; to their queues; and from the queue."""
    asked: list[object] = []
    real = redis.Connection.send_packed_command

    async def counted(self: redis.Connection, command: Any, check_health: bool = True) -> None:
        asked.append(command)
        await real(self, command, check_health)

    monkeypatch.setattr(redis.Connection, "send_packed_command", counted)
    layer, dialog_id = get_channel_layer(), uuid4()
    assert layer is not None
    channel = await layer.new_channel()
    await layer.group_add(group_name(dialog_id), channel)

    for seq in (1, 2):
        # The first opens connections.
        asked.clear()
        is_heard = await stream_state(dialog_id, generation_id=1, seq=seq, text="word", reasoning="")
        heard = await layer.receive(channel)
        assert (is_heard, heard["seq"]) == (True, seq)

    assert len(asked) == 3


async def test_a_queue_that_nobody_takes_from_does_not_grow_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, dialog_id = get_channel_layer(), uuid4()
    assert layer is not None
    monkeypatch.setattr(layer, "capacity", 2)
    channel = await layer.new_channel()
    await layer.group_add(group_name(dialog_id), channel)

    for seq in range(5):
        await stream_state(dialog_id, generation_id=1, seq=seq, text="", reasoning="")

    assert [(await layer.receive(channel))["seq"] for _ in range(2)] == [0, 1]
    async with redis.from_url(settings.REDIS_URL) as server:
        assert await server.zcard(f"asgi{layer.non_local_name(channel)}") == 0


async def test_only_a_group_that_somebody_joined_has_listeners() -> None:
    layer, joined, other = get_channel_layer(), uuid4().hex, uuid4().hex
    assert isinstance(layer, ChannelLayer)
    channel = await layer.new_channel()
    await layer.group_add(joined, channel)

    assert await layer.with_listeners([joined, other], since=0) == {joined: [channel]}
