"""The real thing: llama.cpp's own server with real weights, spoken to by the real SDK."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from dialogs.providers import probe
from dialogs.providers.base import (
    ChatMessage,
    ContextOverflow,
    Finished,
    MediaRefused,
    ProviderSettings,
    TextDelta,
    UsageReported,
)
from dialogs.providers.llamacpp import LlamaCpp
from health.monitor.levels import Usage
from tests.dialogs.providers.worlds import error_of, events_of, request

WINDOW = 512
MODEL = "smollm2-135m"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="


@pytest.fixture(scope="module")
def real_server() -> Iterator[ProviderSettings]:
    """One process for all tests of this file, on a free port, with one slot of 512 tokens."""
    threads = max(1, (os.cpu_count() or 1) - 1)
    command = [sys.executable, "-m", "dominds.supervisor.llama_server", "--port", "0"]
    command += ["--context", str(WINDOW), "--threads", str(threads)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield ProviderSettings(name="real", kind="llamacpp", base_url=_address(process), read_timeout=60)
        finally:
            process.terminate()


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.search(r"http://127\.0\.0\.1:\d+", line):
            return found[0]
    pytest.fail("the demo model's server did not start")


async def test_it_streams_and_reports_what_it_cost(real_server: ProviderSettings) -> None:
    asked = request(ChatMessage(role="user", content="Say hello."), max_output_tokens=12)

    *texts, reported, finished = await events_of(LlamaCpp(real_server), asked)

    assert len(texts) > 1
    assert all(isinstance(event, TextDelta) for event in texts)
    assert isinstance(reported, UsageReported)
    assert isinstance(reported.usage, Usage)
    assert 5 < reported.usage.prompt_tokens < 100
    assert 0 < reported.usage.completion_tokens <= 12
    assert reported.usage.cached_tokens is not None
    assert finished in {Finished("stop"), Finished("length")}


async def test_the_whole_prompt_counts_although_it_was_cached(real_server: ProviderSettings) -> None:
    asked = request(ChatMessage(role="user", content="Tell me about rivers. " * 10), max_output_tokens=4)

    first = (await events_of(LlamaCpp(real_server), asked))[-2]
    second = (await events_of(LlamaCpp(real_server), asked))[-2]

    assert isinstance(first, UsageReported)
    assert isinstance(second, UsageReported)
    assert isinstance(first.usage, Usage)
    assert isinstance(second.usage, Usage)
    assert second.usage.prompt_tokens == first.usage.prompt_tokens > 40
    assert second.usage.cached_tokens


@pytest.mark.parametrize(
    "options",
    [
        # One that only local servers know, one of OpenAI's.
        {"grammar": 'root ::= "yes" "!"'},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"const": "yes!"}}}},
    ],
)
async def test_a_client_s_options_reach_the_model(real_server: ProviderSettings, options: dict[str, object]) -> None:
    asked = request(ChatMessage(role="user", content="Tell me about rivers."), options=options, max_output_tokens=12)

    events = await events_of(LlamaCpp(real_server), asked)

    said = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert said.strip('"') == "yes!"


async def test_a_prompt_that_is_too_long_names_the_exact_window(real_server: ProviderSettings) -> None:
    asked = request(ChatMessage(role="user", content="word " * 2000))

    error = await error_of(events_of(LlamaCpp(real_server), asked))

    assert isinstance(error, ContextOverflow)
    assert error.context_window == WINDOW
    assert error.prompt_tokens is not None
    assert error.prompt_tokens > 2000


async def test_an_image_that_the_model_does_not_read_is_refused_as_such(real_server: ProviderSettings) -> None:
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    asked = request(ChatMessage(role="user", content="", parts=(image,)))

    error = await error_of(events_of(LlamaCpp(real_server), asked))

    assert isinstance(error, MediaRefused)


async def test_closing_a_stream_frees_the_slot(real_server: ProviderSettings) -> None:
    provider = LlamaCpp(real_server)
    stream = provider.stream(request(ChatMessage(role="user", content="Count to a thousand."), max_output_tokens=400))
    async for event in stream:
        if isinstance(event, TextDelta):
            break

    begun = time.monotonic()
    await stream.aclose()
    async with asyncio.timeout(30):
        events = await events_of(provider, request(ChatMessage(role="user", content="Hi"), max_output_tokens=1))

    assert isinstance(events[-1], Finished)
    # 400 tokens take several times as long.
    assert time.monotonic() - begun < 3


async def test_its_window_is_read(real_server: ProviderSettings) -> None:
    facts = await probe.read_limits(real_server, MODEL)

    assert facts.context_length == WINDOW


async def test_its_connection_is_tested(real_server: ProviderSettings) -> None:
    result = await probe.test_connection(real_server)

    assert result.ok
    assert [facts.model_id for facts in result.models] == [MODEL]
    assert "lists 1 model." in result.text
