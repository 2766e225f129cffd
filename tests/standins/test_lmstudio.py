"""The stand-in LM Studio: it must fail as the real one does, or it proves nothing."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from dialogs.providers.base import (
    AuthenticationRefused,
    ChatMessage,
    ContextOverflow,
    Finished,
    ModelNotFound,
    Provider,
    ProviderSettings,
    TextDelta,
    UsageReported,
)
from dialogs.providers.registry import make_provider
from health.monitor.levels import Usage
from tests.dialogs.providers.worlds import error_of, events_of
from tests.dialogs.providers.worlds import request as asked_with
from tests.standins.lmstudio import LMStudioStandin
from tests.standins.serving import serving
from tests.standins.tokens import count

SYSTEM, FIRST, LAST = "You help.", "My name is Alice.", "What is my name?"
MIDDLE = [("user" if at % 2 else "assistant", f"line number {at}") for at in range(20)]


def a_provider(url: str, *, key: str = "") -> Provider:
    return make_provider(ProviderSettings(name="lmstudio", kind="lmstudio", base_url=url, api_key=key, read_timeout=60))


def long_chat() -> list[ChatMessage]:
    said = [("system", SYSTEM), ("user", FIRST), *MIDDLE, ("user", LAST)]
    return [ChatMessage(role=role, content=content) for role, content in said]


async def post(url: str, body: object) -> httpx.Response:
    async with httpx.AsyncClient() as client:
        return await client.post(url, json=body)


@contextmanager
def studio(**fields: object) -> Iterator[tuple[LMStudioStandin, str]]:
    standin = LMStudioStandin(model="small", **fields)  # type: ignore[arg-type]
    with serving(standin.app()) as url:
        yield standin, url


async def test_what_fits_is_answered_and_counted() -> None:
    with studio(answer="Hello there") as (standin, url):
        events = await events_of(a_provider(url), asked_with(ChatMessage(role="user", content="Hi there.")))

    assert events[:2] == [TextDelta("Hello"), TextDelta(" there")]
    assert events[-2:] == [
        UsageReported(
            Usage(prompt_tokens=7, completion_tokens=2, total_tokens=9),
            {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9},
        ),
        Finished("stop"),
    ]
    assert (standin.sizes, standin.largest) == ([7], 7)


async def test_what_does_not_fit_is_refused_with_the_window() -> None:
    with studio(context=130) as (standin, url):
        error = await error_of(events_of(a_provider(url), asked_with(*long_chat())))

    assert isinstance(error, ContextOverflow)
    assert error.context_window == 130
    assert (standin.refused, standin.cuts) == (1, 0)
    assert standin.largest == count([{"role": m.role, "content": m.content} for m in long_chat()])


async def test_by_default_the_middle_is_cut_and_nobody_is_told() -> None:
    with studio(context=130, cut_middle=True) as (standin, url):
        events = await events_of(a_provider(url), asked_with(*long_chat()))

    reported = events[-2]
    assert isinstance(reported, UsageReported)
    assert isinstance(reported.usage, Usage)
    # The request was larger than what is reported: so much was lost.
    assert reported.usage.prompt_tokens <= 130 < standin.largest
    assert (standin.cuts, standin.refused) == (1, 0)


async def test_an_answer_ends_where_the_window_does() -> None:
    with studio(context=20, words=100) as (_standin, url):
        events = await events_of(a_provider(url), asked_with(ChatMessage(role="user", content="Hi there.")))

    assert len([event for event in events if isinstance(event, TextDelta)]) == 13
    assert events[-1] == Finished("length")


@pytest.mark.parametrize("version", [0, 1])
async def test_it_can_be_loaded_otherwise_while_it_runs(version: int) -> None:
    with studio(version=version) as (_standin, url):
        provider, sizes = a_provider(url), []
        for change in ({}, {"context": 8192}, {"loaded": False}):
            await post(f"{url}/standin", change)
            sizes.append((await provider.read_limits("small")).context_length)
        unloaded = await error_of(events_of(provider))

    assert sizes == [4096, 8192, None]
    assert isinstance(unloaded, ModelNotFound)


async def test_it_can_want_a_key() -> None:
    with studio(key="a-token") as (_standin, url):
        assert isinstance(await error_of(a_provider(url).list_models()), AuthenticationRefused)
        assert len(await a_provider(url, key="a-token").list_models()) == 1


def test_as_a_program_it_says_where_it_answers() -> None:
    command = [sys.executable, "-m", "tests.standins.lmstudio", "--context", "512", "--cut-middle"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
        assert found
        told = httpx.get(f"{found[0]}/standin").json()
        process.terminate()

    assert (told["context"], told["requests"]) == (512, 0)


async def test_a_real_server_in_front_answers_and_counts(real_server: str) -> None:
    with studio(context=300, front=real_server) as (standin, url):
        events = await events_of(a_provider(url), asked_with(*long_chat()[:5], long_chat()[-1], max_output_tokens=8))
        error = await error_of(events_of(a_provider(url), asked_with(*long_chat() * 3)))

    reported = events[-2]
    assert isinstance(reported, UsageReported)
    assert isinstance(reported.usage, Usage)
    assert standin.sizes[0] == reported.usage.prompt_tokens
    assert isinstance(error, ContextOverflow)
    assert standin.sizes[1] > 300
