"""A provider that takes one request at a time: turns wait in line, say so, and may be stopped there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from asgiref.sync import async_to_sync
from channels.db import database_sync_to_async as in_db
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from dialogs.driver.run import drive
from dialogs.models import Agent, Course, Dialog, Generation, Provider
from dialogs.providers import pool
from dialogs.providers.pool import slot
from dialogs.turns.writes import lease
from dialogs.turns.writes.messages import request_stop
from tests.dialogs.driver.conftest import USAGE, Play, ask, ask_and_drive, drive_until_idle

pytestmark = pytest.mark.django_db(transaction=True)
ANSWER = {"text": ["one ", "two "], "delay": 0.2, "usage": USAGE}


@pytest.fixture(autouse=True)
def one_at_a_time(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "ASK_EVERY_SECONDS", 0.05)
    provider.max_concurrent = 1
    provider.save()


@pytest.fixture
def another(alice: User, agent: Agent) -> Dialog:
    dialog = Dialog.objects.create(owner=alice, agent=agent, llm=agent.llm, active_at=timezone.now())
    Course.objects.create(dialog=dialog, number=1)
    return dialog


async def until(seen: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not await in_db(seen)():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


def while_taken(dialog: Dialog, provider: Provider, then: Callable[[], Awaitable[None]]) -> Dialog:
    """Drive the dialog while somebody else holds the provider's slot, which is free once `then` is over."""

    async def held() -> None:
        async with slot(provider.name, most=1):
            driving = asyncio.create_task(drive(dialog.pk))
            await until(lambda: Dialog.objects.get(pk=dialog.pk).place_in_line == 1)
            await then()
        await driving

    async_to_sync(held)()
    return drive_until_idle(dialog)


async def nothing() -> None:
    pass


def test_two_dialogs_are_answered_one_after_the_other(dialog: Dialog, another: Dialog, play: Play) -> None:
    play(ANSWER, ANSWER)
    ask(dialog)
    ask(another)

    async def together() -> None:
        await asyncio.gather(drive(dialog.pk), drive(another.pk))

    async_to_sync(together)()

    first, second = Generation.objects.order_by("started_at")
    assert first.status == second.status == "finished"
    assert first.finished_at <= second.started_at


def test_the_page_says_where_a_turn_stands_in_line(
    dialog: Dialog, provider: Provider, play: Play, client: Client
) -> None:
    play(ANSWER)
    ask(dialog)
    client.force_login(dialog.owner)
    page = []

    async def look() -> None:
        page.append(await in_db(client.get)(reverse("dialog", args=[dialog.pk])))

    while_taken(dialog, provider, look)

    assert "Waiting for a free slot at scripted: number 1 in line." in page[0].content.decode()


def test_whoever_waited_is_answered_and_stands_in_line_no_longer(
    dialog: Dialog, provider: Provider, play: Play
) -> None:
    play(ANSWER)
    ask(dialog)

    while_taken(dialog, provider, nothing)

    assert dialog.place_in_line is None
    assert Generation.objects.get().status == "finished"


def test_a_turn_that_waits_can_be_stopped_and_the_provider_never_hears_of_it(
    dialog: Dialog, provider: Provider, play: Play
) -> None:
    requests = play(ANSWER)
    ask(dialog)

    async def stop() -> None:
        await in_db(request_stop)(dialog=dialog)
        await until(lambda: Dialog.objects.get(pk=dialog.pk).place_in_line is None)

    while_taken(dialog, provider, stop)

    assert not dialog.is_busy
    assert requests() == []
    assert not Generation.objects.exists()


def test_what_changed_during_the_wait_is_in_the_request(dialog: Dialog, provider: Provider, play: Play) -> None:
    requests = play(ANSWER)
    ask(dialog)

    async def rewrite() -> None:
        await Agent.objects.filter(pk=dialog.agent_id).aupdate(instructions="Answer in one word.")

    while_taken(dialog, provider, rewrite)

    assert "Answer in one word." in str(requests()[0])


def test_a_place_that_a_dead_worker_left_is_gone_with_the_next_claim(dialog: Dialog) -> None:
    ask(dialog)
    Dialog.objects.filter(pk=dialog.pk).update(place_in_line=3)

    assert lease.claim(dialog.pk)

    dialog.refresh_from_db()
    assert dialog.place_in_line is None


def test_without_redis_a_turn_does_not_wait(dialog: Dialog, play: Play, settings: LazySettings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:9/0"
    play(ANSWER)
    ask_and_drive(dialog)

    assert Generation.objects.get().status == "finished"
