"""Servers that misbehave, for every kind that speaks HTTP: each ends in one clear ProviderError."""

from __future__ import annotations

import asyncio
import logging

import pytest

from dialogs.providers.base import (
    BadAnswer,
    ContextOverflow,
    NotConfigured,
    ProviderError,
    ProviderSettings,
    ProviderUnreachable,
)
from dialogs.providers.registry import make_provider
from tests.dialogs.providers.upstream import Reply, Upstream, as_html, as_json, as_stream, data, named
from tests.dialogs.providers.worlds import (
    KEY,
    Answer,
    AnthropicWorld,
    LlamaCppWorld,
    LMStudioWorld,
    OllamaWorld,
    OpenAIWorld,
    error_of,
    events_of,
    request,
)

WIRED = {
    "openai": OpenAIWorld,
    "lmstudio": LMStudioWorld,
    "ollama": OllamaWorld,
    "llamacpp": LlamaCppWorld,
    "anthropic": AnthropicWorld,
}


DONE = data("[DONE]")
# An event that begins no answer.
NOTHING = "content_block_stop", {"type": "content_block_stop", "index": 0}


@pytest.fixture(params=WIRED)
def world(request: pytest.FixtureRequest, server: Upstream) -> OpenAIWorld | AnthropicWorld:
    return WIRED[request.param](server)


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (as_html(), BadAnswer, "HTML page"),
        (as_html(404), ProviderError, "Is the base URL right?"),
        (as_html(500), ProviderError, "Is the base URL right?"),
        (as_json({"choices": [{"message": {"content": "all at once"}}]}), BadAnswer, "without streaming"),
        (as_json({"error": {"message": "prompt is too long: 9000 tokens > 8000 maximum"}}), ContextOverflow, "8000"),
        (as_json({"error": {"message": "overloaded"}}, status=529), ProviderError, "overloaded"),
    ],
    ids=["a-page", "a-page-404", "a-page-500", "all-at-once", "an-error-with-status-200", "overloaded"],
)
async def test_what_is_no_answer_is_told_in_words_after_one_request_and_no_page_is_quoted(
    world: OpenAIWorld | AnthropicWorld, reply: Reply, kind: type[ProviderError], words: str
) -> None:
    world.server.on(world.path, reply)

    error = await error_of(events_of(world.provider()))

    assert isinstance(error, kind)
    assert words in str(error)
    assert "nginx" not in str(error)
    assert getattr(error, "context_window", 8000) == 8000
    assert len(world.server.asked) == 1


@pytest.mark.parametrize(
    "piece",
    [
        b"data: {broken\n\n",
        b"data: \xff\xfe\n\n",
        b"data: [1, 2]\n\n",
        b"data: 3\n\n",
        b"data: " + b"[" * 100_000 + b"\n\n",
    ],
    ids=["broken", "no UTF-8", "a list", "a number", "nested without end"],
)
async def test_a_malformed_chunk_is_a_bad_answer(world: OpenAIWorld | AnthropicWorld, piece: bytes) -> None:
    world.server.on(world.path, as_stream([b"event: message_start\n" + piece]))

    error = await error_of(events_of(world.provider()))

    assert isinstance(error, BadAnswer)


@pytest.mark.parametrize("ending", ["whole", "cut", "close"])
async def test_a_stream_that_ends_before_it_began_may_be_asked_for_again(
    world: OpenAIWorld | AnthropicWorld, ending: str
) -> None:
    """A proxy has answered for a server that died over its prompt."""
    signs = [] if world.kind == "ollama" else [b": processing\n\n"]
    world.server.on(world.path, as_stream(signs, ending=ending))

    error = await error_of(events_of(world.provider()))

    assert isinstance(error, ProviderUnreachable)
    assert error.retryable


async def test_a_stream_that_says_nothing_is_a_bad_answer(world: OpenAIWorld | AnthropicWorld) -> None:
    world.server.on(world.path, as_stream([b": a comment\n\n", named(*NOTHING), DONE]))

    assert isinstance(await error_of(events_of(world.provider())), BadAnswer)


async def test_a_models_list_that_is_a_page_is_a_bad_answer(world: OpenAIWorld | AnthropicWorld) -> None:
    world.server.on(world.models_path, as_html())

    error = await error_of(world.provider().list_models())

    assert isinstance(error, BadAnswer)
    assert "text/html" in str(error)


async def test_rubbish_in_a_models_list_is_left_out(world: OpenAIWorld | AnthropicWorld) -> None:
    good = {world.id_field: "good", "context_length": "x"}
    world.server.on(world.models_path, as_json({world.models_field: [{"no": "id"}, 3, None, good]}))

    listed = await world.provider().list_models()

    assert [(facts.model_id, facts.context_length) for facts in listed] == [("good", None)]


async def test_a_dead_port_is_told_with_its_address(world: OpenAIWorld | AnthropicWorld) -> None:
    world.server.url = "http://127.0.0.1:9"

    error = await error_of(events_of(world.provider()))

    assert isinstance(error, ProviderUnreachable)
    assert "http://127.0.0.1:9" in str(error)


async def test_closing_the_stream_closes_the_connection(world: OpenAIWorld | AnthropicWorld) -> None:
    world.answers(Answer(text=("word ",) * 1000, delay=0.01))
    provider = world.provider()

    stream = provider.stream(request())
    await anext(stream)
    await stream.aclose()

    async with asyncio.timeout(3):
        await world.server.client_left.wait()
    await provider.aclose()


async def test_a_key_that_the_server_quotes_stays_out_of_errors_and_logs(
    world: OpenAIWorld | AnthropicWorld, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    quoted = f"Incorrect API key provided: {KEY}. Also seen: Bearer {KEY}, sk-another-key-1234567890."
    world.server.on(world.path, as_json({"error": {"message": quoted}}, status=401))
    provider = world.provider()

    error = await error_of(events_of(provider))
    logging.getLogger("test").exception("failed", exc_info=error)

    assert KEY not in str(error) + repr(error) + repr(provider.__dict__) + caplog.text
    assert "sk-another" not in str(error)
    assert "Incorrect API key provided: [key]" in str(error)


async def test_the_environment_sends_nothing_along(
    world: OpenAIWorld | AnthropicWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.setenv(name, "of-somebody-else")
    world.server.on(world.models_path, as_json({world.models_field: []}))
    keyless = ProviderSettings(name="upstream", kind=world.kind, base_url=world.server.url)

    await make_provider(keyless).list_models()

    assert "of-somebody-else" not in str(world.server.asked[0].headers)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"base_url": "not a URL"}, "no blanks"),
        ({"base_url": "ftp://host"}, "starts with http://"),
        ({"base_url": ""}, "starts with http://"),
        ({"base_url": "http://user:secret@host"}, "Leave user name and password out"),
        ({"kind": "telepathy"}, "no kind of provider"),
        ({"api_key": "schlüssel"}, "characters that no key has"),
        ({"api_key": "sk-key\nInjected: header"}, "characters that no key has"),
        ({"problem": "The stored key cannot be read any more."}, "cannot be read any more"),
    ],
)
def test_settings_that_cannot_be_used_are_refused_in_words(changed: dict[str, str], words: str) -> None:
    settings = ProviderSettings(**{"name": "x", "kind": "openai", "base_url": "http://host", **changed})  # type: ignore[arg-type]

    with pytest.raises(NotConfigured, match=words) as caught:
        make_provider(settings)

    assert "secret" not in str(caught.value)
    assert "sk-key" not in str(caught.value)


def test_the_key_is_not_in_the_settings_repr() -> None:
    assert KEY not in repr(ProviderSettings(name="x", kind="openai", base_url="http://host", api_key=KEY))
