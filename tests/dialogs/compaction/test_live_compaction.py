"""A compaction as it happens: its card comes over the socket, alone and in the page's language; others hear nothing."""

from __future__ import annotations

import asyncio
import threading

import pytest
from channels.db import database_sync_to_async as in_db
from channels.layers import get_channel_layer
from django.contrib.auth.models import User

from dialogs.common import broadcast
from dialogs.common.broadcast import group_name
from dialogs.compaction.writes.compaction import claim_run, finish_run, report
from dialogs.models import Dialog
from dialogs.pages import consumers, live_view
from health.models import CompactionRun
from tests.dialogs.compaction_runs import a_run
from tests.dialogs.dom import elements
from tests.dialogs.pages.test_consumers import cookie_of, socket_to, until, watching

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def alices(alice: User) -> str:
    return cookie_of(alice)


@pytest.fixture
def queued(dialog: Dialog) -> CompactionRun:
    """What the guard wants compacted in Alice's dialog; nobody has taken it up."""
    return a_run(dialog, status="queued", tokens_now=None)


def work(run: CompactionRun, **changes: object) -> None:
    """A worker takes the run up and reports how far it is."""
    claim = claim_run(run.pk)
    assert claim is not None
    report(claim, **changes)


async def test_a_runs_report_arrives_as_the_card_alone(dialog: Dialog, queued: CompactionRun, alices: str) -> None:
    async with watching(dialog, alices) as socket:
        await until(socket, 'id="transcript"')

        await in_db(work)(queued, phase="hybrid", tokens_now=4500, priority=2)

        frame = await until(socket, "Applying hybrid compression…")
    (card,) = elements(frame)
    sent = {name.removeprefix("data-"): value for name, value in card.attributes.items()}
    assert card.attributes["id"] == "compaction-card"
    assert sent["type"] == "contextBreakingUpdate"
    assert (sent["phase"], sent["progress"], sent["priority"]) == ("hybrid", "90", "2")
    assert sent["message"] == "Applying hybrid compression…"


async def test_a_report_that_changes_nothing_to_see_is_not_sent(
    dialog: Dialog, queued: CompactionRun, alices: str
) -> None:
    layer = get_channel_layer()
    assert layer is not None
    async with watching(dialog, alices) as socket:
        await until(socket, "Checking context length…")

        for _ in range(20):
            await layer.group_send(group_name(dialog.pk), {"type": "dialog.compaction", "run": queued.pk})

        assert await socket.receive_nothing(timeout=0.5)


async def test_a_page_that_comes_in_the_middle_of_a_run_gets_its_card(
    dialog: Dialog, queued: CompactionRun, alices: str
) -> None:
    await in_db(work)(queued, phase="prioritize_recent")
    await dialog.arefresh_from_db()

    async with watching(dialog, alices, query=f"version={dialog.version}") as socket:
        await until(socket, "Prioritizing P1 units &amp; recent messages…")


async def test_the_card_speaks_the_language_of_the_page(dialog: Dialog, queued: CompactionRun, alices: str) -> None:
    async with watching(dialog, alices, query="lang=zh-hans") as socket:
        await until(socket, 'id="transcript"')

        await in_db(work)(queued, phase="hybrid")

        await until(socket, "正在进行混合压缩…")


async def test_whoever_does_not_own_the_dialog_hears_of_no_compaction(
    dialog: Dialog, queued: CompactionRun, bob: User
) -> None:
    socket = socket_to(dialog.pk, await in_db(cookie_of)(bob))
    await socket.connect()
    assert (await socket.receive_output(timeout=2))["type"] == "websocket.close"

    await in_db(work)(queued, phase="hybrid")

    assert await socket.receive_nothing(timeout=0.5)


async def test_a_lost_end_comes_with_the_next_look(
    dialog: Dialog, queued: CompactionRun, alices: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "LOOK_EVERY_SECONDS", 0.2)
    monkeypatch.setattr(broadcast, "_send", _lose)
    async with watching(dialog, alices) as socket:
        await until(socket, "Checking context length…")

        await in_db(_end)(queued)

        await until(socket, "Compaction failed. Nothing was changed.")


async def _lose(*_event: object) -> None:
    """Redis is away."""


def _end(run: CompactionRun) -> None:
    claim = claim_run(run.pk)
    assert claim is not None
    finish_run(claim, status="failed", facts={})


async def test_tabs_that_hear_of_one_event_share_one_reading(
    dialog: Dialog, queued: CompactionRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    card = live_view._card
    monkeypatch.setattr(live_view, "_card", lambda *asked: read.append("once") or card(*asked))

    cards = await asyncio.gather(*(live_view.card_of((dialog.pk, "en")) for _ in range(50)))

    assert len(set(cards)) == 1
    assert "Checking context length…" in cards[0]
    assert len(read) == 1


async def test_a_reading_that_has_begun_answers_nobody_who_asks_later(
    dialog: Dialog, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end = threading.Event(), threading.Event()
    cards = iter(("earlier", "later"))

    def slowly(*_asked: object) -> str:
        begun.set()
        may_end.wait(5)
        return next(cards)

    monkeypatch.setattr(live_view, "_card", slowly)
    first = asyncio.create_task(live_view.card_of((dialog.pk, "en")))
    await asyncio.to_thread(begun.wait, 5)

    second = asyncio.create_task(live_view.card_of((dialog.pk, "en")))
    await asyncio.sleep(0)
    may_end.set()

    assert (await first, await second) == ("earlier", "later")
