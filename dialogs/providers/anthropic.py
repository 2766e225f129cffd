"""Anthropic's messages API, through the official SDK. Also whoever copies it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, ClassVar
from urllib.parse import quote

import anthropic
import httpx2

from dialogs.providers.addresses import api_root
from dialogs.providers.anthropic_request import wire_request
from dialogs.providers.anthropic_stream import MessageStream
from dialogs.providers.base import ChatRequest, ModelFacts, ProviderSettings, StreamEvent
from dialogs.providers.errors import translated
from dialogs.providers.http import as_event, connecting, json_of, refuse_other_than_stream
from dialogs.providers.model_facts import facts_in, facts_of
from dialogs.providers.wire import as_mapping

# The SDK would otherwise look for a key in the environment and on the disk.
NO_KEY = "none"
MOST_MODELS = 1000

Events = anthropic.AsyncStream[object]


class Anthropic:
    kind: ClassVar[str] = "anthropic"

    def __init__(self, settings: ProviderSettings) -> None:
        self.settings = settings
        self._client = anthropic.AsyncAnthropic(
            base_url=api_root(settings.base_url),
            api_key=settings.api_key or NO_KEY,
            max_retries=0,
            http_client=anthropic.DefaultAsyncHttpxClient(**connecting(settings)),
        )

    async def stream(self, request: ChatRequest) -> AsyncGenerator[StreamEvent, None]:
        answer = MessageStream()
        with translated(anthropic, self.settings):
            async with await self._open(request) as events:
                await refuse_other_than_stream(events.response)
                async for event in events:
                    for ours in answer.add(as_event(event)):
                        yield ours
            for ours in answer.end():
                yield ours

    async def list_models(self) -> tuple[ModelFacts, ...]:
        with translated(anthropic, self.settings):
            return facts_in(await self._get(f"/v1/models?limit={MOST_MODELS}"))

    async def read_limits(self, model_id: str) -> ModelFacts:
        with translated(anthropic, self.settings):
            return facts_of(as_mapping(await self._get(f"/v1/models/{quote(model_id, safe='')}")))

    async def aclose(self) -> None:
        await self._client.close()

    async def _open(self, request: ChatRequest) -> Events:
        """Send and read plain JSON: the SDK's types for it cost more than the whole request."""
        body = wire_request(request)
        return await self._client.post("/v1/messages", cast_to=object, body=body, stream=True, stream_cls=Events)

    async def _get(self, path: str) -> Any:
        return json_of(await self._client.get(path, cast_to=httpx2.Response))
