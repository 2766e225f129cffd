"""Watching a dialog over a websocket: who may, what arrives, and how what was lost is made good."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
import redis.asyncio as redis
from channels.db import database_sync_to_async as in_db
from channels.layers import get_channel_layer
from channels.testing import WebsocketCommunicator
from channels_redis.core import RedisChannelLayer
from django.conf import LazySettings, settings
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client
from redis.exceptions import ResponseError

from dialogs.common.broadcast import all_sent, answer_held, dialog_changed, stream_state
from dialogs.driver.writes.courses import set_handover_away, start_course
from dialogs.models import Dialog, Generation
from dialogs.pages import consumers, live_view
from dialogs.pages.consumers import NOT_SIGNED_IN, NOT_YOURS, TOO_LONG
from dialogs.pages.live_view import Rendering
from dialogs.transcript.writes.dialog_row import lock, save
from dialogs.turns.writes.messages import post_message
from dominds.asgi import application
from tests.builders import a_generation, an_answer
from tests.dialogs.dom import Page
from tests.dialogs.full_database import full_error

pytestmark = pytest.mark.django_db(transaction=True)

ORIGIN = "http://127.0.0.1:8000"


def cookie_of(user: User | None) -> str:
    client = Client()
    if user is not None:
        client.force_login(user)
    morsel = client.cookies.get(settings.SESSION_COOKIE_NAME)
    return f"{settings.SESSION_COOKIE_NAME}={morsel.value}" if morsel else ""


def socket_to(dialog_id: object, cookie: str, *, origin: str | None = ORIGIN, query: str = "") -> WebsocketCommunicator:
    headers = [(b"host", b"127.0.0.1:8000"), (b"cookie", cookie.encode())]
    if origin is not None:
        headers.append((b"origin", origin.encode()))
    return WebsocketCommunicator(application, f"/ws/dialogs/{dialog_id}/?{query}", headers=headers)


@asynccontextmanager
async def watching(dialog: Dialog, cookie: str, query: str = "") -> AsyncIterator[WebsocketCommunicator]:
    socket = socket_to(dialog.pk, cookie, query=query)
    connected, _ = await socket.connect()
    assert connected
    try:
        yield socket
    finally:
        await socket.disconnect()


async def until(socket: WebsocketCommunicator, text: str, *, seconds: float = 5) -> str:
    """The first frame that holds this text."""
    async with asyncio.timeout(seconds):
        while text not in (frame := await socket.receive_from(timeout=seconds)):
            pass
    return str(frame)


@pytest.fixture
def alices(alice: User) -> str:
    return cookie_of(alice)


@pytest.fixture
def live(dialog: Dialog) -> Generation:
    """Alice's dialog in mid-answer: the worker has flushed its first words."""
    post_message(dialog=dialog, content="Tell me a story")
    dialog.refresh_from_db()
    return a_generation(dialog, partial_text="Once upon")


async def test_the_owner_gets_everything_on_connecting(dialog: Dialog, alices: str) -> None:
    await in_db(post_message)(dialog=dialog, content="Hello there")

    async with watching(dialog, alices) as socket:
        frame = await until(socket, "Hello there")

    for part in ('id="transcript"', 'id="meter"', 'id="health-panel"', 'id="turn"'):
        assert part in frame


async def test_a_page_for_which_there_is_nothing_new_gets_a_sign_of_life_now_and_then(
    dialog: Dialog, alices: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "LOOK_EVERY_SECONDS", 0.1)
    monkeypatch.setattr(consumers, "SILENT_SECONDS", 0.3)

    async with watching(dialog, alices, query=f"version={dialog.version}") as socket:
        assert await socket.receive_nothing(timeout=0.2)
        assert [await socket.receive_from(timeout=5) for _ in range(2)] == [consumers.SIGN_OF_LIFE] * 2


async def test_a_page_whose_socket_opens_after_the_handover_was_taken_away_gets_that(
    dialog: Dialog, alices: str
) -> None:
    """The event of it was sent while nobody listened yet: the version must have risen."""
    await in_db(post_message)(dialog=dialog, content="Never delete a file.")
    await in_db(an_answer)(dialog, "I will not.")
    await in_db(start_course)(dialog=dialog)
    await dialog.arefresh_from_db()
    await in_db(set_handover_away)(dialog=dialog, number=2, away=True)

    async with watching(dialog, alices, query=f"version={dialog.version}") as socket:
        assert await until(socket, "a handover, which you took away")


async def test_an_up_to_date_page_gets_the_answer_that_is_being_made(
    dialog: Dialog, live: Generation, alices: str
) -> None:
    async with watching(dialog, alices, query=f"version={dialog.version}") as socket:
        assert "Once upon" in await until(socket, 'id="live"')


@pytest.mark.parametrize(
    ("who", "is_there", "code"), [("bob", True, NOT_YOURS), (None, True, NOT_SIGNED_IN), ("bob", False, NOT_YOURS)]
)
async def test_whoever_does_not_own_the_dialog_is_turned_away_as_from_one_that_is_not_there(
    dialog: Dialog, bob: User, who: str | None, is_there: bool, code: int
) -> None:
    cookie = await in_db(cookie_of)(bob if who else None)
    socket = socket_to(dialog.pk if is_there else uuid4(), cookie)

    await socket.connect()

    assert (await socket.receive_output(timeout=2)) == {"type": "websocket.close", "code": code}


@pytest.mark.parametrize("origin", [None, "https://evil.example", "http://127.0.0.1.evil.example"])
async def test_a_missing_or_foreign_origin_is_refused(dialog: Dialog, alices: str, origin: str | None) -> None:
    connected, _ = await socket_to(dialog.pk, alices, origin=origin).connect()

    assert not connected


@pytest.mark.parametrize(
    ("how", "said"),
    [("signs out", True), ("signs out", False), ("is switched off", True), ("gets another password", True)],
)
async def test_whoever_is_not_signed_in_any_more_hears_nothing(
    dialog: Dialog, alice: User, alices: str, how: str, said: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not said:
        monkeypatch.setattr(consumers, "LOOK_EVERY_SECONDS", 0.2)
    async with watching(dialog, alices) as socket:
        await until(socket, 'id="transcript"')

        await in_db(leave)(alice, alices, how)
        if said:
            await in_db(post_message)(dialog=dialog, content="For nobody's eyes")

        assert (await socket.receive_output(timeout=5)) == {"type": "websocket.close", "code": NOT_SIGNED_IN}


def leave(person: User, cookie: str, how: str) -> None:
    client = Client()
    client.cookies.load(cookie)
    match how:
        case "signs out":
            client.post("/logout/")
        case "is switched off":
            User.objects.filter(pk=person.pk).update(is_active=False)
        case _:
            person.set_password("another-1")
            person.save()


async def test_many_tabs_that_hear_of_one_change_read_once_whether_they_lack_it(
    dialog: Dialog, alices: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[object] = []
    version = live_view._version
    monkeypatch.setattr(live_view, "_version", lambda dialog_id: read.append(dialog_id) or version(dialog_id))
    async with AsyncExitStack() as tabs:
        sockets = [await tabs.enter_async_context(watching(dialog, alices)) for _ in range(12)]
        for socket in sockets:
            await until(socket, 'id="transcript"')
        read.clear()

        await in_db(post_message)(dialog=dialog, content="Hello there")

        for socket in sockets:
            await until(socket, "Hello there")
    assert len(read) <= 4, "some moments, not one for each tab"


async def test_what_is_said_while_a_tab_comes_up_is_sent_to_it(
    dialog: Dialog, alices: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read under the version before it was said, which is the page's, as reading takes several queries."""
    whole = consumers.render_dialog

    async def torn(*where: Any) -> Rendering | None:
        version = await consumers.visible_version(dialog.pk)
        await in_db(post_message)(dialog=dialog, content="Said meanwhile")
        rendering = await whole(*where)
        monkeypatch.setattr(consumers, "render_dialog", whole)
        assert rendering is not None
        return replace(rendering, version=version or 0)

    monkeypatch.setattr(consumers, "render_dialog", torn)

    async with watching(dialog, alices, query=f"version={dialog.version}") as socket:
        await until(socket, "Said meanwhile")


async def test_what_no_socket_takes_the_page_is_told_to_bring_itself(
    dialog: Dialog, alices: str, settings: LazySettings
) -> None:
    async with watching(dialog, alices) as socket:
        await until(socket, 'id="transcript"')
        settings.DOMINDS_SOCKET_BYTES = 50_000

        await in_db(post_message)(dialog=dialog, content="Every word of it. " * 5_000)

        while (heard := await socket.receive_output(timeout=5))["type"] == "websocket.send":
            assert "Every word" not in heard["text"]
        assert heard["code"] == TOO_LONG


async def test_two_tabs_end_up_with_the_same_answer(dialog: Dialog, live: Generation, alices: str) -> None:
    text = "Once upon a time.\n\nThere was"
    first_page, second_page = Page(), Page()
    async with watching(dialog, alices) as first:
        first_page.apply(await until(first, 'id="live"'))
        await stream_state(dialog.pk, generation_id=live.pk, seq=2, text=text, reasoning="")
        frame = await until(first, "There was")
        first_page.apply(frame)
        async with watching(dialog, alices) as second:
            second_page.apply(await until(second, 'id="live"'))

            await stream_state(dialog.pk, generation_id=live.pk, seq=3, text=f"{text} a king.", reasoning="")

            first_page.apply(await until(first, "a king"))
            second_page.apply(await until(second, "a king"))
    assert '<div class="block" id="live-block-0"><p>Once upon a time.</p>' in frame
    assert 'hx-swap-oob="beforeend:#live-blocks"' in frame
    assert first_page.blocks == second_page.blocks
    assert len(first_page.blocks) == 2


async def test_a_tab_that_lost_a_part_of_the_answer_reads_it_from_the_database(
    dialog: Dialog, live: Generation, alices: str
) -> None:
    async with watching(dialog, alices) as socket:
        await until(socket, 'id="live"')
        said = "Once upon a time there was a king."
        await Generation.objects.filter(pk=live.pk).aupdate(partial_text=said)

        await stream_state(dialog.pk, generation_id=live.pk, seq=9, text="king. He", reasoning="", at=len(said) - 5)

        await until(socket, "there was a king. He")


async def test_what_no_record_holds_yet_waits_for_the_next_state(dialog: Dialog, live: Generation, alices: str) -> None:
    async with watching(dialog, alices) as socket:
        await until(socket, 'id="live"')

        await stream_state(dialog.pk, generation_id=live.pk, seq=9, text="the end", reasoning="", at=500)
        await stream_state(dialog.pk, generation_id=live.pk, seq=10, text="Once upon a time", reasoning="")

        assert "the end" not in await until(socket, "Once upon a time")


async def test_while_the_database_is_full_the_page_says_once_that_the_answer_is_held_and_then_shows_it(
    dialog: Dialog, live: Generation, alices: str
) -> None:
    async with watching(dialog, alices) as socket:
        await until(socket, 'id="live"')

        for _second in range(2):
            answer_held(dialog.pk, full_error())
            await all_sent()
        frame = await until(socket, "is full")
        assert await socket.receive_nothing(timeout=0.3)
        await in_db(finished)(dialog, live)
        after = await until(socket, 'id="turn"')

    assert 'id="turn-words"' in frame
    assert "is full" not in after


async def test_a_disk_that_is_full_for_redis_too_is_said_on_the_page_of_an_answer_that_is_made(
    dialog: Dialog, live: Generation, alices: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(_consumer: object) -> None:
        raise ResponseError("MISCONF Errors writing to the AOF file: No space left on device")

    monkeypatch.setattr(consumers, "LOOK_EVERY_SECONDS", 0.2)
    async with watching(dialog, alices) as socket:
        await until(socket, 'id="live"')
        monkeypatch.setattr(consumers.DialogConsumer, "_join", full)

        await until(socket, "is full")


async def test_the_meter_grows_with_the_answer_hatched_and_about(dialog: Dialog, live: Generation, alices: str) -> None:
    async with watching(dialog, alices) as socket:
        await until(socket, 'id="live"')

        await stream_state(dialog.pk, generation_id=live.pk, seq=2, text="Once", reasoning="", size=(3_240, 4_096))
        frame = await until(socket, "meter-growing")
        await in_db(finished)(dialog, live)
        settled = await until(socket, "meter-growing")

    assert "≈3,240" in frame
    assert 'width="79.1" height="8" rx="2" fill="url(#meter-hatch)"' in frame
    assert "≈" not in settled.partition('id="meter-growing"')[2].partition("</span>")[0]


@transaction.atomic
def finished(dialog: Dialog, live: Generation) -> None:
    """The answer under way ends without a word."""
    Generation.objects.filter(pk=live.pk).update(status="stopped")
    save(lock(dialog))


async def test_a_stream_that_the_tab_has_not_heard_of_brings_its_row(dialog: Dialog, alices: str) -> None:
    async with watching(dialog, alices) as socket:
        await until(socket, 'id="transcript"')
        await Dialog.objects.filter(pk=dialog.pk).aupdate(version=dialog.version)
        await in_db(post_message)(dialog=dialog, content="Hello")
        await dialog.arefresh_from_db()
        generation = await in_db(a_generation)(dialog)

        await stream_state(dialog.pk, generation_id=generation.pk, seq=1, text="Hi", reasoning="")

        await until(socket, "live-block-0")


async def test_five_hundred_quick_states_end_with_the_recorded_answer(
    dialog: Dialog, live: Generation, alices: str
) -> None:
    async with watching(dialog, alices) as socket:
        await until(socket, 'id="live"')
        for seq in range(500):
            await stream_state(dialog.pk, generation_id=live.pk, seq=seq, text=f"word {seq}", reasoning="")
        await in_db(_record)(dialog, live, "The recorded answer.")

        frame = await until(socket, "The recorded answer.", seconds=20)

    assert '<div id="live" hx-swap-oob="delete"></div>' in frame


def _record(dialog: Dialog, live: Generation, text: str) -> None:
    live.delete()
    an_answer(dialog, text)
    Dialog.objects.filter(pk=dialog.pk).update(version=10**6)
    dialog_changed(dialog.pk)


async def test_a_tab_joins_again_when_redis_has_forgotten_it(
    dialog: Dialog, live: Generation, alices: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "LOOK_EVERY_SECONDS", 0.2)
    async with watching(dialog, alices) as socket, redis.from_url(settings.REDIS_URL) as server:
        await until(socket, 'id="live"')

        await server.flushdb()
        await asyncio.sleep(0.5)
        await stream_state(dialog.pk, generation_id=live.pk, seq=2, text="Once upon a time", reasoning="")

        await until(socket, "Once upon a time")


async def test_a_redis_that_takes_nothing_for_a_while_does_not_end_the_looking_which_makes_a_lost_event_good(
    dialog: Dialog, alices: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "LOOK_EVERY_SECONDS", 0.2)
    async with watching(dialog, alices) as socket, redis.from_url(settings.REDIS_URL) as server:
        await until(socket, 'id="transcript"')

        await server.config_set("maxmemory", 1)
        await asyncio.sleep(0.5)
        await server.config_set("maxmemory", 0)
        # Changed behind the channel layer's back, as if the event had been dropped.
        await Dialog.objects.filter(pk=dialog.pk).aupdate(title="Renamed", version=10**6)

        await until(socket, "Renamed")


async def test_redis_may_be_silent_for_longer_than_a_tab_waits_for_an_event() -> None:
    layer = get_channel_layer()
    assert isinstance(layer, RedisChannelLayer)

    async with layer.connection(0) as connection:
        patience = connection.connection_pool.connection_kwargs["socket_timeout"]

    assert patience > layer.brpop_timeout


async def test_an_erased_dialog_closes_the_socket(dialog: Dialog, alices: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "LOOK_EVERY_SECONDS", 0.2)
    async with watching(dialog, alices) as socket:
        await until(socket, 'id="transcript"')

        await Dialog.objects.filter(pk=dialog.pk).adelete()

        assert (await socket.receive_output(timeout=3))["code"] == NOT_YOURS


@pytest.mark.parametrize(("lang", "word"), [("zh-hans", "未知"), ("en", "unknown"), ("tlh", "unknown")])
async def test_fragments_speak_the_language_of_the_page(dialog: Dialog, alices: str, lang: str, word: str) -> None:
    async with watching(dialog, alices, query=f"lang={lang}") as socket:
        frame = await until(socket, 'id="meter"')

    assert word in frame
