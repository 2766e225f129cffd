"""The stand-in Ollama: what it sets aside, and what it does with what does not fit."""

from __future__ import annotations

import httpx
import pytest

from dialogs.providers.base import ChatMessage, ContextOverflow, Finished, ModelNotFound, ProviderSettings, TextDelta
from dialogs.providers.ollama import Ollama
from tests.dialogs.providers.worlds import error_of, events_of
from tests.dialogs.providers.worlds import request as asked_with
from tests.standins.ollama import OllamaStandin
from tests.standins.serving import serving

LONG = [ChatMessage(role="user" if at % 2 else "assistant", content=f"line number {at}") for at in range(1, 20)]


@pytest.fixture
def standin() -> OllamaStandin:
    return OllamaStandin(model="small:latest", context=50)


def a_provider(url: str) -> Ollama:
    return Ollama(ProviderSettings(name="ollama", kind="ollama", base_url=url, read_timeout=10))


async def test_a_request_has_the_window_set_aside_that_it_asks_for(standin: OllamaStandin) -> None:
    with serving(standin.app()) as url:
        before = await a_provider(url).read_limits("small")
        events = await events_of(a_provider(url), asked_with(*LONG, context_window=8192))
        after = await a_provider(url).read_limits("small")

    assert (before.context_length, after.context_length) == (None, 8192)
    assert events[:2] == [TextDelta("Hello"), TextDelta(" there.")]
    assert events[-1] == Finished("stop")


async def test_our_requests_are_refused_rather_than_cut(standin: OllamaStandin) -> None:
    with serving(standin.app()) as url:
        error = await error_of(events_of(a_provider(url), asked_with(*LONG)))

    assert isinstance(error, ContextOverflow)
    assert error.context_window == 50
    assert (standin.refused, standin.dropped) == (1, 0)


async def test_others_lose_the_oldest_without_a_word(standin: OllamaStandin) -> None:
    with serving(standin.app()) as url:
        body = {"model": "small", "messages": [{"role": m.role, "content": m.content} for m in LONG]}
        async with httpx.AsyncClient() as client:
            answer = await client.post(f"{url}/api/chat", json=body)

    assert answer.status_code == 200
    assert standin.dropped == 1
    assert standin.largest > 50


async def test_it_knows_only_its_own_model(standin: OllamaStandin) -> None:
    with serving(standin.app()) as url:
        listed = await a_provider(url).list_models()
        error = await error_of(a_provider(url).read_limits("other"))

    assert [facts.model_id for facts in listed] == ["small:latest"]
    assert isinstance(error, ModelNotFound)
