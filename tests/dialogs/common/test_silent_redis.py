"""A Redis that is there and says nothing, as one that is stopped: nobody waits long for it, and nothing is lost."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest
from channels.layers import channel_layers, get_channel_layer
from django.conf import LazySettings
from django.test import Client

from dialogs.common import broadcast, schedule
from dialogs.common.channel_layer import ChannelLayer
from dialogs.models import Dialog

pytestmark = pytest.mark.django_db(transaction=True)
MOST_SECONDS = 5.0


@pytest.fixture
def silent(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0), backlog=50) as server:
        url = f"redis://127.0.0.1:{server.getsockname()[1]}/0"
        settings.CELERY_BROKER_URL = url
        # Made now, so that there is one to put back.
        get_channel_layer()
        before = channel_layers.set("default", ChannelLayer(hosts=[{"address": url, "socket_timeout": 15}]))
        monkeypatch.setattr(broadcast, "_silent_until", 0.0)
        monkeypatch.setattr(schedule, "_silent_until", 0.0)
        yield url
        channel_layers.set("default", before)


def test_an_action_in_a_page_takes_a_few_seconds_at_most(as_alice: Client, dialog: Dialog, silent: str) -> None:
    # The first request of a process loads all pages.
    as_alice.get("/healthz")
    begun = time.monotonic()

    answer = as_alice.post(f"/dialogs/{dialog.pk}/send/", {"content": "Hello"})

    assert answer.status_code < 400
    assert time.monotonic() - begun < MOST_SECONDS
    assert dialog.messages.filter(content="Hello").exists()


def test_the_next_actions_wait_for_nothing(dialog: Dialog, silent: str) -> None:
    broadcast.dialog_changed(dialog.pk)
    assert not schedule.queue_drive(dialog.pk)
    begun = time.monotonic()

    for _time in range(20):
        broadcast.dialog_changed(dialog.pk)
        assert not schedule.queue_drive(dialog.pk)

    assert time.monotonic() - begun < 1.0


def test_that_it_is_away_and_back_is_said_once(
    dialog: Dialog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(broadcast, "_is_away", False)
    get_channel_layer()
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = {"address": f"redis://127.0.0.1:{closed.getsockname()[1]}/0"}
    before = channel_layers.set("default", ChannelLayer(hosts=[nobody]))
    try:
        for _piece in range(5):
            broadcast.dialog_changed(dialog.pk)
    finally:
        channel_layers.set("default", before)
    broadcast.dialog_changed(dialog.pk)

    said = [record.message for record in caplog.records if "roadcast" in record.message]
    assert [words.split()[0] for words in said] == ["Could", "Broadcasts"]


def test_once_it_speaks_again_it_is_spoken_to(dialog: Dialog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "_silent_until", time.monotonic() - 1)

    assert schedule.queue_drive(dialog.pk)
