"""What a server may send is bounded, and the conversation goes to nobody whom it names; for every kind with HTTP."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib

import pytest
from django.conf import LazySettings

from dialogs.providers import http
from dialogs.providers.base import AnswerEndless, BadAnswer, ProviderError, TextDelta
from tests.dialogs.providers.test_bad_upstreams import WIRED
from tests.dialogs.providers.upstream import Reply, Upstream, as_json, upstream
from tests.dialogs.providers.worlds import Answer, AnthropicWorld, OpenAIWorld, error_of, events_of


@pytest.fixture(params=WIRED)
def world(request: pytest.FixtureRequest, server: Upstream) -> OpenAIWorld | AnthropicWorld:
    return WIRED[request.param](server)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_takes_neither_key_nor_conversation_anywhere(
    world: OpenAIWorld | AnthropicWorld, status: int
) -> None:
    async with upstream() as elsewhere:
        moved = as_json({}, status=status, headers={"location": f"{elsewhere.url}{world.path}"})
        world.server.on(world.path, moved)
        world.server.on(world.models_path, moved)

        answered, listed = await error_of(events_of(world.provider())), await error_of(world.provider().list_models())

    assert elsewhere.asked == []
    assert isinstance(answered, ProviderError)
    assert "which is not followed" in str(answered)
    assert "which is not followed" in str(listed)


async def test_an_event_without_end_is_given_up(
    world: OpenAIWorld | AnthropicWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "LONGEST_EVENT_BYTES", 100_000)
    kind = "application/x-ndjson" if world.kind == "ollama" else "text/event-stream"
    world.server.on(
        world.path, Reply(content_type=kind, pieces=(b'data: {"x": "', *[b"y" * 5_000] * 100), ending="hang")
    )

    error = await error_of(events_of(world.provider()))

    assert isinstance(error, BadAnswer)
    assert "in one event" in str(error)


async def test_signs_of_life_without_an_answer_are_given_up(
    world: OpenAIWorld | AnthropicWorld, settings: LazySettings
) -> None:
    settings.DOMINDS_MAX_ANSWER_SECONDS = 0.3
    kind, sign = "text/event-stream", b": keep-alive\n\n"
    if world.kind == "ollama":
        kind, sign = "application/x-ndjson", b"\n"
    world.server.on(world.path, Reply(content_type=kind, pieces=(sign,) * 100, delay=0.05))

    error = await error_of(events_of(world.provider()))

    assert isinstance(error, AnswerEndless)
    assert "longer than 0.3 s" in str(error)


async def test_many_events_may_be_longer_than_one(
    world: OpenAIWorld | AnthropicWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "LONGEST_EVENT_BYTES", 2_000)
    world.answers(Answer(text=("word " * 100,) * 40))

    events = await events_of(world.provider())

    assert sum(len(event.text) for event in events if isinstance(event, TextDelta)) == 20_000


async def test_a_body_without_end_is_given_up(
    world: OpenAIWorld | AnthropicWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "LONGEST_BODY_BYTES", 100_000)
    for path in (world.models_path, world.path):
        world.server.on(path, Reply(status=500, pieces=(b"[", *[b"1," * 2_000] * 100), ending="hang"))

    answered, listed = await error_of(events_of(world.provider())), await error_of(world.provider().list_models())

    assert "larger than 100,000 bytes" in str(answered)
    assert "larger than 100,000 bytes" in str(listed)


@pytest.mark.parametrize("name", ["gzip", "deflate"])
async def test_a_few_bytes_that_unfold_to_very_many_are_given_up(
    world: OpenAIWorld | AnthropicWorld, name: str
) -> None:
    fold = gzip.compress if name == "gzip" else zlib.compress
    bomb = fold(b"data: " + b" " * 80_000_000)
    world.server.on(
        world.path, Reply(content_type="text/event-stream", headers={"content-encoding": name}, pieces=(bomb,))
    )
    tracemalloc.start()

    error = await error_of(events_of(world.provider()))
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert isinstance(error, BadAnswer)
    assert peak < 45_000_000


async def test_a_compressed_list_is_read(world: OpenAIWorld | AnthropicWorld) -> None:
    told = as_json({world.models_field: [{world.id_field: "good"}]})
    folded = Reply(headers={"content-encoding": "gzip"}, pieces=(gzip.compress(told.pieces[0]),))
    for path in (world.models_path, "/api/ps"):
        world.server.on(path, folded)

    listed = await world.provider().list_models()

    assert [facts.model_id for facts in listed] == ["good"]
    assert world.server.asked[0].headers["accept-encoding"] == "gzip, deflate"


async def test_a_compression_that_nobody_asked_for_is_refused(world: OpenAIWorld | AnthropicWorld) -> None:
    folded = Reply(content_type="text/event-stream", headers={"content-encoding": "br"}, pieces=(b"\x01\x02",))
    world.server.on(world.path, folded)

    assert isinstance(await error_of(events_of(world.provider())), BadAnswer)
