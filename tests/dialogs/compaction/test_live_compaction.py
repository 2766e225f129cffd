"""A compaction as it happens: its card comes over the socket, alone and in the page's language; others hear nothing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
from channels.db import database_sync_to_async as in_db
from channels.layers import get_channel_layer
from django.contrib.auth.models import User
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dialogs.common import broadcast
from dialogs.common.broadcast import group_name
from dialogs.compaction.settings.checking import budget_warnings, limit_warnings, type_warnings
from dialogs.compaction.writes.compaction import claim_run, finish_run, report
from dialogs.driver import guarding, run
from dialogs.models import Dialog
from dialogs.pages import consumers, live_view
from dialogs.turns.writes.messages import retry
from health.compaction.config import ContextConfig
from health.configured import ONLY
from health.limits import effective_limit
from health.models import CompactionRun, ContextSettings
from health.monitor.levels import Configured
from tests.dialogs.compacting_builders import a_history
from tests.dialogs.compaction_runs import a_run
from tests.dialogs.dom import elements
from tests.dialogs.driver.conftest import ask_and_drive, drive_until_idle
from tests.dialogs.pages.test_consumers import cookie_of, socket_to, until, watching
from tests.standins.serving import serving

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


# What is told of a model's limits. What an admin wrote is never changed by it.


@pytest.mark.parametrize(
    ("configured", "ids"),
    [
        (Configured(context_length=200_000), []),
        (Configured(context_length=111_113), []),  # nine tenths is 100,001: just above the default
        (Configured(context_length=111_112), ["health.W001"]),
        (Configured(context_length=32_768), ["health.W001"]),
        (Configured(context_length=32_768, optimal_max_tokens=24_576), []),
        (Configured(input_length=200_000), []),
        (Configured(context_length=10, optimal_max_tokens=5, critical_max_tokens=11), ["health.W002"]),
        (Configured(context_length=10, optimal_max_tokens=20, critical_max_tokens=11), ["health.W002", "health.W001"]),
        (Configured(), ["health.W003"]),
        (Configured(optimal_max_tokens=5, critical_max_tokens=3), ["health.W003"]),
    ],
)
def test_odd_limits_are_named(configured: Configured, ids: list[str]) -> None:
    found = limit_warnings("demo/tiny", configured)

    assert [warning.id for warning in found] == ids
    assert all("demo/tiny" in warning.msg and warning.hint for warning in found)


@pytest.mark.parametrize(
    ("limit", "is_p1", "window", "ids"),
    [
        (5000, False, 8192, []),
        (5000, False, None, []),
        (5000, False, 5000, []),
        (3499, False, 8192, ["health.W004"]),  # the floor of 3,500 holds
        (3400, True, 8192, []),  # a fifth more is above the floor
        (5000, False, 4096, ["health.W005"]),
        (5000, True, 5999, ["health.W005"]),  # so is a fifth more
        (2000, False, 2048, ["health.W004", "health.W005"]),
    ],
)
def test_odd_limits_of_an_agent_are_named(limit: int, is_p1: bool, window: int | None, ids: list[str]) -> None:
    uncapped = effective_limit(ContextConfig(), agent_limit=limit, is_p1=is_p1)

    found = budget_warnings("Helper", uncapped, window=window)

    assert [warning.id for warning in found] == ids
    assert all("Helper" in warning.msg and warning.hint for warning in found)


@pytest.mark.parametrize(("limit_type", "ids"), [("", []), ("gpt4", []), ("gpt5", ["health.W006"])])
def test_a_limit_type_that_nobody_knows_is_named(limit_type: str, ids: list[str]) -> None:
    assert [warning.id for warning in type_warnings("demo/tiny", limit_type, ContextConfig())] == ids


# With no limit set, a request is the same byte for byte as without anybody who could compact it.


EAGER = "context_config:\n  default_limit: 3500\n  warning_threshold: 0.1\n  goal: 0.05\n  accept: 0.08\n"


class Listener:
    """A server that writes down what it is asked, byte for byte, and refuses it."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    async def refuse(self, request: Request) -> Response:
        if request.method == "POST":
            self.bodies.append(await request.body())
        return JSONResponse({"error": {"message": "no", "type": "invalid_request_error"}}, status_code=400)


@pytest.fixture
def listener() -> Iterator[tuple[Listener, str]]:
    heard = Listener()
    with serving(Starlette(routes=[Route("/{path:path}", heard.refuse, methods=["GET", "POST"])])) as url:
        yield heard, url


@pytest.mark.parametrize("kind", ["openai", "ollama", "anthropic"])
def test_requests_are_the_same_with_the_guard_and_without_it(
    kind: str, dialog: Dialog, listener: tuple[Listener, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    heard, url = listener
    dialog.llm.provider.kind, dialog.llm.provider.base_url = kind, url
    dialog.llm.provider.save()
    ContextSettings.objects.create(pk=ONLY, values=EAGER, pruning_agent=dialog.agent)
    a_history(dialog, pairs=40)

    ask_and_drive(dialog, "And now?")
    monkeypatch.setattr(run, "with_guarding", lambda state, _looked: state)
    monkeypatch.setattr(guarding, "guard_of", lambda *_asked: None)
    retry(dialog=dialog)
    drive_until_idle(dialog)

    with_guard, without_guard = heard.bodies
    assert with_guard == without_guard
    assert b"Reading 3900" in with_guard
    assert not CompactionRun.objects.exists()
