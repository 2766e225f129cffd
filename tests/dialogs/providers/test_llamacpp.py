"""What is llama.cpp's own: loading, timings, and where the window is read."""

from __future__ import annotations

from typing import Any

import pytest

from dialogs.providers.base import (
    ProviderFailed,
    UsageReported,
)
from health.monitor.levels import Usage
from tests.dialogs.providers.upstream import Reply, Upstream, as_json, as_stream, data
from tests.dialogs.providers.worlds import (
    LlamaCppWorld,
    chat_chunk,
    error_of,
    events_of,
)

CHAT = LlamaCppWorld.path
HELLO, DONE = chat_chunk({"content": "Hello"}), data("[DONE]")


async def test_a_loading_server_is_worth_a_retry(server: Upstream) -> None:
    loading = {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}
    server.on(CHAT, as_json(loading, status=503))

    error = await error_of(events_of(LlamaCppWorld(server).provider()))

    assert isinstance(error, ProviderFailed)
    assert error.retryable
    assert "Loading model" in str(error)


async def test_llamacpp_timings_stand_in_for_usage(server: Upstream) -> None:
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    timings = {"cache_n": 236, "prompt_n": 1, "predicted_n": 9, "predicted_ms": 12.5}
    server.on(CHAT, as_stream([HELLO, data({**last, "timings": timings}), DONE]))

    events = await events_of(LlamaCppWorld(server).provider())

    assert events[-2] == UsageReported(
        Usage(prompt_tokens=237, completion_tokens=9, total_tokens=246, cached_tokens=236),
        {"usage": None, "timings": timings},
    )


def listed(meta: Any) -> Reply:
    return as_json({"data": [{"id": "small", "meta": meta}, {"id": "other", "meta": None}]})


@pytest.mark.parametrize(
    ("props", "meta", "window"),
    [
        ({"/props": 4096}, {"n_ctx": 1, "n_ctx_train": 8192}, 4096),
        # A router answers a dummy unless it is asked for one model.
        ({"/props": 0, "/props?model=small": 2048}, None, 2048),
        # No `/props`: the list says what is allocated, which is not what was trained.
        ({}, {"n_ctx": 1024, "n_ctx_train": 8192}, 1024),
        ({"/props": 0, "/props?model=small": 0}, {"n_ctx_train": 8192}, None),
        ({"/props": "many"}, None, None),
    ],
)
async def test_the_window_is_what_the_server_allocated(
    server: Upstream, props: dict[str, Any], meta: Any, window: int | None
) -> None:
    server.on("/v1/models", listed(meta))
    for path, n_ctx in props.items():
        server.on(path, as_json({"default_generation_settings": {"n_ctx": n_ctx}}))

    limits = await LlamaCppWorld(server).provider().read_limits("small")

    assert limits.context_length == window
