"""The database is away for a moment while an answer comes: it goes on, and is stored once that is back."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Timer
from typing import Any

import pytest
from channels.layers import get_channel_layer
from django.conf import LazySettings
from django.db import InterfaceError, OperationalError, connection
from django.utils import timezone

from dialogs.common import threads
from dialogs.common.broadcast import group_name
from dialogs.driver import generate, streaming
from dialogs.models import Dialog, Generation, Message
from dialogs.turns.writes import generations, lease
from tests.dialogs.driver.conftest import USAGE, Play, ask, drive_until_idle
from tests.dialogs.driver.test_crashes import drive_to_the_end
from tests.dialogs.full_database import full_error

pytestmark = pytest.mark.django_db(transaction=True)

SLOWLY = {"text": ["word "] * 20, "delay": 0.05, "usage": USAGE}
AWAY = OperationalError("connection refused")
Outage = Callable[..., list[int]]


@pytest.fixture
def outage(monkeypatch: pytest.MonkeyPatch) -> Outage:
    """Lets a function of a module fail the first times, as when the database is away; returns the failures so far."""
    monkeypatch.setattr(threads, "AGAIN_SECONDS", 0.05)
    monkeypatch.setattr(streaming, "FLUSH_EVERY_SECONDS", 0.3)

    def fail(module: object, name: str, times: int, error: Exception = AWAY) -> list[int]:
        real = getattr(module, name)
        failures: list[int] = []

        def called(*args: Any, **kwargs: Any) -> Any:
            if len(failures) < times:
                failures.append(len(failures))
                raise error if len(failures) % 2 else InterfaceError("connection already closed")
            return real(*args, **kwargs)

        monkeypatch.setattr(module, name, called)
        return failures

    return fail


def expect_one_whole_answer(dialog: Dialog) -> None:
    assert list(Generation.objects.values_list("status", flat=True)) == ["finished"]
    assert [message.content for message in dialog.messages.all()] == ["Hello", "word " * 20]


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (generations, "flush_each"),
        (streaming, "unwanted"),
        (lease, "renew"),
        (generations, "finish"),
    ],
    ids=["kept so far", "asked whether it is stopped", "lease renewed", "stored whole"],
)
def test_an_answer_goes_on_while_the_database_is_away_and_that_is_said_once(
    dialog: Dialog,
    play: Play,
    outage: Outage,
    settings: LazySettings,
    caplog: pytest.LogCaptureFixture,
    module: object,
    name: str,
) -> None:
    settings.DOMINDS_LEASE_SECONDS = 0.9
    requests = play(SLOWLY)
    ask(dialog)
    failures = outage(module, name, 3)

    with caplog.at_level(logging.WARNING):
        drive_until_idle(dialog)

    assert len(failures) == 3
    expect_one_whole_answer(dialog)
    assert len(requests()) == 1
    assert [record.getMessage() for record in caplog.records if record.name == threads.__name__] == [
        "The database is away or locked; answers that are under way go on: connection refused",
        "The database answers again",
    ]


def test_an_answer_that_was_stored_unheard_is_stored_once(
    dialog: Dialog, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection breaks after the transaction was committed, and before anybody here is told so."""
    monkeypatch.setattr(threads, "AGAIN_SECONDS", 0.05)
    requests = play({"text": "Hi.", "usage": USAGE})
    ask(dialog)
    keep, tries = generate.keep, []

    def unheard(*args: Any) -> Any:
        tries.append(args)
        kept = keep(*args)
        if len(tries) == 1:
            raise AWAY
        return kept

    monkeypatch.setattr(generate, "keep", unheard)
    drive_until_idle(dialog)

    assert len(tries) == 2
    assert list(Message.objects.values_list("content", flat=True)) == ["Hello", "Hi."]
    assert len(requests()) == 1


def test_an_answer_that_cannot_be_stored_for_long_is_asked_for_anew(
    dialog: Dialog, play: Play, outage: Outage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generate, "HELD_SECONDS", 0.0)
    requests = play({"text": "Hi.", "usage": USAGE})
    ask(dialog)
    outage(generations, "finish", 1)

    drive_to_the_end(dialog)

    assert list(Message.objects.values_list("content", flat=True)) == ["Hello", "Hi."]
    assert list(Generation.objects.values_list("status", flat=True)) == ["interrupted", "finished"]
    assert len(requests()) == 2


@pytest.mark.parametrize(("error", "heard"), [(full_error(), True), (AWAY, False)], ids=["full", "away"])
def test_whoever_looks_on_hears_that_an_answer_is_held_while_the_database_is_full(
    dialog: Dialog, play: Play, outage: Outage, error: Exception, heard: bool
) -> None:
    play({"text": "Hi.", "usage": USAGE})
    ask(dialog)
    outage(generations, "finish", 2, error)
    seen: list[str] = []

    async def watch() -> None:
        layer: Any = get_channel_layer()
        channel = await layer.new_channel()
        await layer.group_add(group_name(dialog.pk), channel)
        while await dialog.messages.filter(role="assistant").acount() == 0:
            with suppress(TimeoutError):
                seen.append((await asyncio.wait_for(layer.receive(channel), 0.5))["type"])

    drive_until_idle(dialog, beside=watch)

    assert ("dialog.held" in seen) is heard
    assert [message.content for message in dialog.messages.all()] == ["Hello", "Hi."]


# --- A lease that ran out while nobody could renew it ---
@contextmanager
def locked(seconds: float) -> Iterator[None]:
    """Another program has SQLite's file to itself for so long."""
    holder = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None, check_same_thread=False)
    holder.execute("BEGIN IMMEDIATE")
    release = Timer(seconds, holder.rollback)
    release.start()
    yield
    release.join()
    holder.close()


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("Elsewhere a transaction begins at once, and locks are of rows.")
    monkeypatch.setattr(lease, "LATE_SECONDS", 0.2)


@pytest.mark.usefixtures("late")
def test_whoever_had_to_wait_for_a_lock_takes_a_dialog_that_nobody_holds_and_leaves_others_to_their_holders(
    dialog: Dialog,
) -> None:
    ask(dialog)
    with locked(0.5):
        held = lease.claim(dialog.pk)
    assert held
    Dialog.objects.update(lease_until=timezone.now())

    with locked(0.5):
        assert lease.claim(dialog.pk) is None

    lease.renew(held)
    Dialog.objects.update(lease_until=timezone.now())
    assert lease.claim(dialog.pk)
