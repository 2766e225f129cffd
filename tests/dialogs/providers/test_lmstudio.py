"""What is LM Studio's own: where the window of what is loaded stands, and errors that are bare texts."""

from __future__ import annotations

from typing import Any

import pytest

from dialogs.providers.base import BadAnswer, ContextOverflow, Finished, ModelFacts, ModelNotFound, TextDelta
from tests.dialogs.providers.test_overflow import LM_STUDIO_GENERATING
from tests.dialogs.providers.upstream import Upstream, as_html, as_json, as_stream, data
from tests.dialogs.providers.worlds import LMStudioWorld, chat_chunk, error_of, events_of

V1, V0 = "/api/v1/models", "/api/v0/models"
# What a version answers where it knows no such path.
UNEXPECTED = {"error": "Unexpected endpoint or method. (GET /api/v1/models)"}
# As LM Studio's documentation prints them.
GEMMA: dict[str, Any] = {
    "type": "llm",
    "publisher": "google",
    "key": "google/gemma-4-26b-a4b",
    "display_name": "Gemma 4 26B A4B",
    "architecture": "gemma4",
    "quantization": {"name": "Q4_K_M", "bits_per_weight": 4},
    "size_bytes": 17_990_911_801,
    "params_string": "26B-A4B",
    "loaded_instances": [
        {"id": "google/gemma-4-26b-a4b", "config": {"context_length": 4096, "eval_batch_size": 512, "parallel": 4}}
    ],
    "max_context_length": 262_144,
    "format": "gguf",
}
EMBEDDER = {"type": "embedding", "key": "text-embedding-nomic", "loaded_instances": [], "max_context_length": 2048}
QWEN_V0: dict[str, Any] = {
    "id": "qwen2-vl-7b-instruct",
    "object": "model",
    "type": "vlm",
    "publisher": "mlx-community",
    "arch": "qwen2_vl",
    "compatibility_type": "mlx",
    "quantization": "4bit",
    "state": "not-loaded",
    "max_context_length": 32_768,
}


def gemma(*instances: tuple[str, int | None]) -> dict[str, Any]:
    """The model with these instances loaded."""
    return GEMMA | {"loaded_instances": [{"id": name, "config": {"context_length": n}} for name, n in instances]}


async def limits(server: Upstream, model_id: str, **lists: Any) -> ModelFacts:
    for name, body in lists.items():
        server.on(f"/api/{name}/models", as_json(body))
    return await LMStudioWorld(server).provider().read_limits(model_id)


async def test_the_loaded_length_is_the_window_and_the_maximum_is_not(server: Upstream) -> None:
    found = await limits(server, GEMMA["key"], v1={"models": [EMBEDDER, GEMMA]})

    assert (found.context_length, found.maximum, found.loaded) == (4096, 262_144, True)
    assert found.source == "of the loaded instance, /api/v1/models"
    assert found.note == "gemma4, 26B-A4B, Q4_K_M"


async def test_a_model_that_is_not_loaded_has_no_window_and_a_word_on_what_to_do(server: Upstream) -> None:
    found = await limits(server, GEMMA["key"], v1={"models": [gemma()]})

    assert (found.context_length, found.maximum, found.loaded) == (None, 262_144, False)
    assert found.source == ""
    assert found.note.startswith("Not loaded. Load it in LM Studio")
    assert "262,144 tokens at most" in found.note


@pytest.mark.parametrize(
    ("instances", "asked", "window"),
    [
        ([("gemma:2", 8192), ("gemma:3", 4096)], "gemma:2", 8192),
        # Asked by the model's own name, any instance may answer: the smallest counts.
        ([("gemma:2", 8192), ("gemma:3", 4096)], GEMMA["key"], 4096),
        # One that is named like the model is the one that is meant.
        ([(GEMMA["key"], 8192), ("gemma:2", 4096)], GEMMA["key"], 8192),
    ],
)
async def test_each_instance_has_its_own_window(
    server: Upstream, instances: list[tuple[str, int]], asked: str, window: int
) -> None:
    assert (await limits(server, asked, v1={"models": [gemma(*instances)]})).context_length == window


async def test_every_instance_is_listed_and_no_embedder(server: Upstream) -> None:
    server.on(V1, as_json({"models": [EMBEDDER, gemma(("a", 4096), ("b", 8192))]}))

    listed = await LMStudioWorld(server).provider().list_models()

    assert [(facts.model_id, facts.context_length) for facts in listed] == [("a", 4096), ("b", 8192)]


@pytest.mark.parametrize("older", [as_json(UNEXPECTED), as_json(UNEXPECTED, status=404), as_html(404)])
async def test_a_version_without_the_newer_list_is_read_by_the_older(server: Upstream, older: Any) -> None:
    server.on(V1, older)
    loaded = QWEN_V0 | {"id": "q", "state": "loaded", "max_context_length": 131_072, "loaded_context_length": 4096}
    server.on(V0, as_json({"object": "list", "data": [QWEN_V0, loaded, EMBEDDER | {"id": "e", "type": "embeddings"}]}))

    unloaded, found = await LMStudioWorld(server).provider().list_models()

    assert (unloaded.context_length, unloaded.maximum, unloaded.loaded) == (None, 32_768, False)
    assert (found.context_length, found.maximum, found.loaded) == (4096, 131_072, True)
    assert found.source == "of the loaded instance, /api/v0/models"


async def test_a_window_that_the_newer_list_leaves_out_is_taken_from_the_older(server: Upstream) -> None:
    older = QWEN_V0 | {"id": GEMMA["key"], "state": "loaded", "loaded_context_length": 2048}
    newer = gemma((GEMMA["key"], None))

    assert (await limits(server, GEMMA["key"], v1={"models": [newer]}, v0={"data": [older]})).context_length == 2048


@pytest.mark.parametrize("window", [None, 0, -1, "4096", True, 4096.5])
async def test_what_is_no_number_of_tokens_is_no_window(server: Upstream, window: Any) -> None:
    found = await limits(server, GEMMA["key"], v1={"models": [gemma((GEMMA["key"], window))]}, v0={"data": []})

    assert found.context_length is None
    assert "does not say" in found.note


async def test_another_server_is_told_apart(server: Upstream) -> None:
    server.on("/v1/models", as_json({"data": [{"id": "a", "context_length": 4096}]}))

    error = await error_of(LMStudioWorld(server).provider().list_models())

    assert isinstance(error, BadAnswer)
    assert "no LM Studio" in str(error)


async def test_an_empty_studio_lists_nothing(server: Upstream) -> None:
    server.on(V1, as_json({"models": []}))

    assert await LMStudioWorld(server).provider().list_models() == ()
    assert isinstance(await error_of(LMStudioWorld(server).provider().read_limits("a")), ModelNotFound)


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/", "/api/v1", "/api"])
async def test_the_address_is_taken_as_people_copy_it(server: Upstream, path: str) -> None:
    server.on(V1, as_json({"models": [GEMMA]}))
    server.on(LMStudioWorld.path, as_stream([chat_chunk({"content": "Hi"}, "stop"), data("[DONE]")]))
    server.url += path
    provider = LMStudioWorld(server).provider()

    await provider.list_models()
    await events_of(provider)

    assert [asked.path for asked in server.asked] == [V1, LMStudioWorld.path]


async def test_an_answer_that_fills_the_window_has_ended_and_is_no_prompt_that_was_too_long(server: Upstream) -> None:
    full = data({"error": {"message": LM_STUDIO_GENERATING}})
    server.on(LMStudioWorld.path, as_stream([chat_chunk({"content": "Once upon"}), b"event: error\n" + full]))

    events = await events_of(LMStudioWorld(server).provider())

    assert events[0] == TextDelta("Once upon")
    assert events[-1] == Finished("length")


@pytest.mark.parametrize("wrapped", [True, False], ids=["object", "bare text"])
@pytest.mark.parametrize("streamed", [True, False], ids=["in the stream", "status 400"])
async def test_an_overflow_teaches_the_window(server: Upstream, wrapped: bool, streamed: bool) -> None:
    """Each wording: test_overflow.py."""
    body = {"error": {"message": LM_STUDIO_GENERATING} if wrapped else LM_STUDIO_GENERATING}
    in_stream = as_stream([b"event: error\n" + data(body)])
    server.on(LMStudioWorld.path, in_stream if streamed else as_json(body, status=400))

    error = await error_of(events_of(LMStudioWorld(server).provider()))

    assert isinstance(error, ContextOverflow)
    assert error.context_window == 32_000
    assert LM_STUDIO_GENERATING[:30] in str(error)
