"""The models lists of servers that each added a field of their own to OpenAI's."""

from __future__ import annotations

from typing import Any

import pytest

from dialogs.providers.base import (
    Provider,
)
from tests.dialogs.providers.upstream import Upstream, as_json
from tests.dialogs.providers.worlds import (
    OpenAIWorld,
)


@pytest.fixture
def openai(server: Upstream) -> Provider:
    return OpenAIWorld(server).provider()


@pytest.mark.parametrize(
    ("entry", "window", "output"),
    [
        ({"context_length": 131_072}, 131_072, None),
        # OpenRouter: the host allows less than the model could do.
        (
            {"context_length": 262_144, "top_provider": {"context_length": 131_072, "max_completion_tokens": 16_384}},
            131_072,
            16_384,
        ),
        ({"max_model_len": 2048}, 2048, None),
        ({"max_model_len": None}, None, None),
        ({"context_window": 8192, "max_completion_tokens": 4096}, 8192, 4096),
        ({"max_context_length": 32_768}, 32_768, None),
        ({"context_length": 0}, None, None),
        ({"context_length": "big"}, None, None),
    ],
)
async def test_each_list_has_its_own_word_for_the_window(
    server: Upstream, openai: Provider, entry: dict[str, Any], window: int | None, output: int | None
) -> None:
    server.on("/v1/models", as_json({"data": [{"id": "small", **entry}]}))

    limits = await openai.read_limits("small")

    assert (limits.context_length, limits.output_length) == (window, output)
