"""Watching the list over a websocket: what changes arrives, nobody else's does, and nothing twice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from channels.db import database_sync_to_async as in_db
from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import AnonymousUser, User
from django.http import QueryDict

from dialogs.common.broadcast import dialog_changed
from dialogs.models import Agent, Dialog
from dialogs.pages import consumers
from dialogs.pages.consumers import NOT_SIGNED_IN
from dialogs.pages.views.lists import ListQuery, list_context
from dialogs.pages.writes import create_dialog, rename_dialog
from dialogs.turns.writes.messages import post_message
from dominds.asgi import application
from tests.dialogs.pages.test_consumers import ORIGIN, cookie_of, until

pytestmark = pytest.mark.django_db(transaction=True)


@asynccontextmanager
async def watching(user: User | None, query: str = "") -> AsyncIterator[WebsocketCommunicator]:
    headers = [(b"host", b"127.0.0.1:8000"), (b"origin", ORIGIN.encode())]
    headers.append((b"cookie", (await in_db(cookie_of)(user)).encode()))
    socket = WebsocketCommunicator(application, f"/ws/dialogs/?{query}", headers=headers)
    connected, _ = await socket.connect()
    assert connected
    try:
        yield socket
    finally:
        await socket.disconnect()


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "LIST_EVERY_SECONDS", 0.05)


def state(user: User | AnonymousUser) -> str:
    return str(list_context(user, ListQuery.of(QueryDict()))["state"])


async def test_a_row_that_changed_comes_alone(dialog: Dialog, alice: User) -> None:
    shown = await in_db(state)(alice)
    async with watching(alice, f"state={shown}") as socket:
        assert await socket.receive_nothing(timeout=0.3)

        await in_db(rename_dialog)(dialog=dialog, title="The harbour")

        frame = await until(socket, "The harbour")
        assert f'id="dialog-{dialog.pk}"' in frame
        assert 'id="dialogs-inside"' not in frame


async def test_what_begins_and_moves_brings_the_list_anew_with_its_counts(
    dialog: Dialog, alice: User, agent: Agent
) -> None:
    async with watching(alice, f"state={await in_db(state)(alice)}") as socket:
        other = await in_db(create_dialog)(owner=alice, agent=agent)
        await in_db(post_message)(dialog=other, content="What about the quay?")

        frame = await until(socket, str(other.pk))
        assert 'id="dialogs-inside"' in frame
        assert frame.index(str(other.pk)) < frame.index(str(dialog.pk))
        if "strip-running" not in frame:
            await until(socket, 'id="strip-running"')


async def test_a_page_that_is_behind_gets_the_list_on_connecting(dialog: Dialog, alice: User) -> None:
    async with watching(alice, "state=old&lang=zh-hans") as socket:
        assert "未命名" in await until(socket, str(dialog.pk))


async def test_nobody_gets_what_is_anothers(dialog: Dialog, bob: User) -> None:
    async with watching(bob, f"state={await in_db(state)(bob)}") as socket:
        await in_db(rename_dialog)(dialog=dialog, title="A secret of Alice")
        await in_db(dialog_changed)(dialog.pk)

        assert await socket.receive_nothing(timeout=0.5)


async def test_an_event_that_was_lost_is_made_good(
    dialog: Dialog, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "LOOK_EVERY_SECONDS", 0.2)
    async with watching(alice, f"state={await in_db(state)(alice)}") as socket:
        await in_db(Dialog.objects.update)(title="Told by nobody", version=99)

        assert "Told by nobody" in await until(socket, "Told by nobody")


async def test_whoever_is_not_signed_in_is_turned_away(db: None) -> None:
    async with watching(None) as socket:
        assert (await socket.receive_output())["code"] == NOT_SIGNED_IN
