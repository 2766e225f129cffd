"""Providers kept open between requests: shared within an event loop, never beyond it, closed when nobody needs them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from django.conf import settings as django_settings

from dialogs.providers import pool
from dialogs.providers.base import NotConfigured, Provider, ProviderSettings, TextDelta
from dialogs.providers.pool import borrowed
from tests.dialogs.providers.upstream import Upstream
from tests.dialogs.providers.worlds import KEY, WORLDS, Answer, AnthropicWorld, OllamaWorld, OpenAIWorld, request

HELLO = Answer(text=("Hello",), usage=(10, 1))
CROWD = 64


@pytest.fixture(params=["openai", "ollama", "anthropic"])
def world(request: pytest.FixtureRequest, server: Upstream) -> OpenAIWorld | OllamaWorld | AnthropicWorld:
    found = WORLDS[request.param](server)
    assert isinstance(found, OpenAIWorld | OllamaWorld | AnthropicWorld)
    found.answers(HELLO)
    return found


def settings_of(server: Upstream, kind: str = "openai") -> ProviderSettings:
    return ProviderSettings(name="upstream", kind=kind, base_url=server.url, api_key=KEY, read_timeout=20)


async def said(settings: ProviderSettings) -> str:
    async with borrowed(settings) as provider:
        events = [event async for event in provider.stream(request())]
    return "".join(event.text for event in events if isinstance(event, TextDelta))


async def provider_of(settings: ProviderSettings) -> Provider:
    async with borrowed(settings) as provider:
        return provider


async def comes_true(fact: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not fact():  # noqa: ASYNC110 - a fact of another task has no event
            await asyncio.sleep(0.005)


def in_a_loop_of_its_own(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


async def test_the_second_request_finds_the_connection_of_the_first(
    world: OpenAIWorld | OllamaWorld | AnthropicWorld, server: Upstream
) -> None:
    settings = settings_of(server, world.kind)

    answers = [await said(settings) for _ in range(3)]

    assert answers == ["Hello"] * 3
    assert server.connections == 1


async def test_many_streams_run_at_once_on_one_provider(
    world: OpenAIWorld | OllamaWorld | AnthropicWorld, server: Upstream
) -> None:
    server.crowd = CROWD

    async with asyncio.timeout(60):
        answers = await asyncio.gather(*(said(settings_of(server, world.kind)) for _ in range(CROWD)))

    assert answers == ["Hello"] * CROWD
    assert server.connections == CROWD


async def test_whoever_is_cancelled_ends_his_own_request_only(server: Upstream) -> None:
    OpenAIWorld(server).answers(HELLO)
    server.crowd = 3
    left, stayed = (asyncio.create_task(said(settings_of(server))) for _ in range(2))
    await comes_true(lambda: len(server.asked) == 2)

    left.cancel()
    await comes_true(lambda: server.open == 1)
    third = await said(settings_of(server))

    assert left.cancelled()
    assert [await stayed, third] == ["Hello", "Hello"]


async def test_other_settings_have_another_provider(server: Upstream) -> None:
    settings = settings_of(server)

    first, again = await provider_of(settings), await provider_of(settings)
    other = await provider_of(replace(settings, api_key="sk-another-key"))

    assert first is again
    assert first is not other


async def test_what_nobody_borrows_is_closed(server: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    OpenAIWorld(server).answers(HELLO)
    monkeypatch.setattr(pool, "IDLE_SECONDS", 0)

    before = await provider_of(settings_of(server))
    await said(settings_of(server))
    await comes_true(lambda: server.open == 0)

    assert await provider_of(settings_of(server)) is not before


async def test_what_is_borrowed_is_never_closed(server: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    OpenAIWorld(server).answers(HELLO)
    monkeypatch.setattr(pool, "IDLE_SECONDS", 0)

    async with borrowed(settings_of(server)) as held:
        await said(settings_of(server))
        await asyncio.sleep(0.05)

        assert server.open == 1
        assert await provider_of(settings_of(server)) is held


async def test_a_loop_shares_nothing_with_another_and_closes_all_when_it_ends(server: Upstream) -> None:
    OpenAIWorld(server).answers(HELLO)
    ours, theirs, loops = await provider_of(settings_of(server)), [], []

    async def elsewhere() -> None:
        loops.append(asyncio.get_running_loop())
        theirs.append(await provider_of(settings_of(server)))
        await said(settings_of(server))

    thread = in_a_loop_of_its_own(lambda: asyncio.run(elsewhere()))
    await comes_true(lambda: server.connections == 1)
    await asyncio.to_thread(thread.join)

    assert theirs != [ours]
    await comes_true(lambda: server.open == 0)
    assert asyncio.get_running_loop() in pool._shelves
    assert loops[0] not in pool._shelves


async def test_a_loop_that_was_closed_carelessly_is_forgotten(server: Upstream) -> None:
    careless = asyncio.new_event_loop()
    work = careless.run_until_complete
    await asyncio.to_thread(work, provider_of(settings_of(server)))
    careless.close()

    await asyncio.to_thread(asyncio.run, provider_of(settings_of(server)))

    assert careless not in pool._shelves


async def test_settings_that_cannot_be_used_are_refused_and_not_kept(server: Upstream) -> None:
    settings = replace(settings_of(server), problem="The key cannot be read.")

    for _ in range(2):
        with pytest.raises(NotConfigured, match="cannot be read"):
            await provider_of(settings)

    assert settings not in (await pool._shelf()).kept


async def test_a_script_is_read_anew_each_time() -> None:
    script, answers = ProviderSettings(name="scripted", kind="scripted", base_url="anew.json"), []

    for text in ("One.", "Two."):
        (Path(django_settings.DOMINDS_DATA_DIR) / "anew.json").write_text(f'{{"steps": [{{"text": "{text}"}}]}}')
        answers.append(await said(script))

    assert answers == ["One.", "Two."]
