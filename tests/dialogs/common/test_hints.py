"""Hints to workers and browsers: given once the transaction has committed, and lost without harm.

Redis is the test run's own. Where it is said to be away, nothing listens on the port.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Collection, Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest
from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.conf import LazySettings
from django.db import transaction
from django.test import Client

from dialogs.common import schedule
from dialogs.common.broadcast import all_sent, dialog_changed, group_name, stream_state
from dialogs.common.channel_layer import ChannelLayer
from dialogs.common.schedule import DRIVE, drive_on_commit, queue_drive
from dialogs.common.threads import in_db, own_threads
from dialogs.models import Dialog
from dialogs.turns.reads.turns import due_dialogs
from dialogs.turns.writes.messages import post_message
from dominds.celery import app
from tests.dialogs.pages.views.pages import HTMX
from tests.environment import free_port

QUICK_SECONDS = 5


@pytest.fixture(autouse=True)
def not_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that was slow in an earlier test is left alone for some seconds by the whole process."""
    monkeypatch.setattr(schedule, "_silent_until", 0.0)


@pytest.fixture
def without_redis(settings: LazySettings) -> None:
    nowhere = f"redis://127.0.0.1:{free_port()}/0"
    layers = {"default": settings.CHANNEL_LAYERS["default"] | {"CONFIG": {"hosts": [{"address": nowhere}]}}}
    settings.CHANNEL_LAYERS = layers
    settings.CELERY_BROKER_URL = nowhere


@pytest.fixture
def queued() -> Iterator[Any]:
    """Returns the dialogs that were queued since the last call, in order. Starts from an empty queue."""

    def take() -> list[UUID]:
        with app.connection_for_read() as connection:
            waiting = connection.SimpleQueue("turns")
            found = []
            with contextlib.suppress(waiting.Empty):
                while True:
                    task = waiting.get_nowait()
                    task.ack()
                    if task.headers["task"] == DRIVE:
                        found.append(UUID(task.payload[0][0]))
            return found

    take()
    yield take
    take()


def hears(dialog_id: UUID, tell: Any) -> dict[str, Any]:
    """What a browser that watches this dialog gets when `tell` is awaited."""

    async def listen() -> dict[str, Any]:
        layer = get_channel_layer()
        assert layer is not None
        channel = await layer.new_channel()
        await layer.group_add(group_name(dialog_id), channel)
        await tell()
        event: dict[str, Any] = await asyncio.wait_for(layer.receive(channel), 5)
        return event

    return async_to_sync(listen)()


def test_a_browser_hears_that_its_dialog_changed() -> None:
    dialog_id = uuid4()

    event = hears(dialog_id, lambda: asyncio.to_thread(dialog_changed, dialog_id))

    assert event == {"type": "dialog.changed"}


def test_a_browser_hears_of_no_other_dialog() -> None:
    dialog_id = uuid4()

    async def both() -> None:
        await asyncio.to_thread(dialog_changed, uuid4())
        await stream_state(dialog_id, generation_id=1, seq=1, text="", reasoning="")

    assert hears(dialog_id, both)["type"] == "dialog.stream"


def test_of_all_that_changes_within_a_moment_redis_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """And each browser hears of its own dialog, once."""
    asked: list[int] = []
    ours, theirs = uuid4(), uuid4()
    real = ChannelLayer.with_listeners

    async def counted(self: ChannelLayer, groups: Collection[str], *, since: float) -> dict[str, list[str]]:
        asked.append(len(groups))
        return await real(self, groups, since=since)

    monkeypatch.setattr(ChannelLayer, "with_listeners", counted)

    async def several() -> None:
        with own_threads():
            for dialog_id in (theirs, ours, theirs, ours):
                await in_db(dialog_changed)(dialog_id)
            await all_sent()

    assert hears(ours, several) == {"type": "dialog.changed"}
    assert asked == [3]


@pytest.mark.parametrize("text", ["a", "过敏" * 250_000], ids=["short", "long"])
def test_a_browser_is_sent_the_answer_so_far_from_where_the_database_ends_in_one_hint(text: str) -> None:
    dialog_id = uuid4()

    event = hears(dialog_id, lambda: stream_state(dialog_id, generation_id=7, seq=3, text=text, reasoning="Hm", at=5))

    said, thoughts = {"text": text, "at": 5}, {"reasoning": "Hm", "thought_at": 0}
    assert event == {"type": "dialog.stream", "generation": 7, "seq": 3, **said, **thoughts}


@pytest.mark.django_db(transaction=True)
def test_workers_hear_of_a_turn_only_when_it_is_stored(queued: Any) -> None:
    dialog_id = uuid4()

    with transaction.atomic():
        drive_on_commit(uuid4())
        transaction.set_rollback(True)
    with transaction.atomic():
        drive_on_commit(dialog_id)
        assert queued() == []
    assert queued() == [dialog_id]

    assert queue_drive(dialog_id)
    assert queued() == [dialog_id]


@pytest.mark.django_db(transaction=True)
def test_a_posted_message_wakes_the_driver_of_its_dialog(dialog: Dialog, queued: Any) -> None:
    post_message(dialog=dialog, content="Hello")

    assert queued() == [dialog.pk]


def test_without_redis_telling_fails_quietly_and_says_so(without_redis: None, caplog: Any) -> None:
    assert not queue_drive(uuid4())
    dialog_changed(uuid4())

    assert [record.levelname for record in caplog.records if record.name.startswith("dialogs.")] == ["WARNING"] * 2


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("headers", [{}, HTMX], ids=["plain", "htmx"])
def test_without_redis_a_message_is_stored_at_once_and_left_to_the_sweeper(
    without_redis: None,
    as_alice: Client,
    dialog: Dialog,
    headers: dict[str, str],
) -> None:
    began = time.monotonic()
    response = as_alice.post(f"/dialogs/{dialog.pk}/send/", {"content": "Hello"}, headers=headers)

    assert time.monotonic() - began < QUICK_SECONDS
    assert response.status_code == (204 if headers else 302)
    assert list(dialog.messages.values_list("content", flat=True)) == ["Hello"]
    assert due_dialogs() == [dialog.pk]


@pytest.mark.django_db(transaction=True)
def test_without_redis_the_page_is_served(without_redis: None, as_alice: Client, dialog: Dialog) -> None:
    post_message(dialog=dialog, content="Hello")

    assert "Hello" in as_alice.get(f"/dialogs/{dialog.pk}/").content.decode()
