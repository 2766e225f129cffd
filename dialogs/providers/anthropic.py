"""Anthropic's messages API, through the official SDK. Also whoever copies it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from itertools import groupby
from typing import Any, ClassVar, cast
from urllib.parse import quote

import anthropic
import httpx2

from dialogs.providers.addresses import api_root
from dialogs.providers.anthropic_stream import MessageStream
from dialogs.providers.base import ChatMessage, ChatRequest, ModelFacts, ProviderSettings, StreamEvent
from dialogs.providers.errors import translated
from dialogs.providers.http import as_json, json_of, refuse_other_than_stream, timeouts
from dialogs.providers.model_facts import facts_in, facts_of
from dialogs.providers.wire import as_mapping

# The API insists on a ceiling for the answer; every current model takes this one.
DEFAULT_MAX_TOKENS = 8_192
# The SDK would otherwise look for a key in the environment and on the disk.
NO_KEY = "none"
MOST_MODELS = 1000

Events = anthropic.AsyncStream[Any]


class Anthropic:
    kind: ClassVar[str] = "anthropic"

    def __init__(self, settings: ProviderSettings) -> None:
        self.settings = settings
        self._client = anthropic.AsyncAnthropic(
            base_url=api_root(settings.base_url),
            api_key=settings.api_key or NO_KEY,
            max_retries=0,
            timeout=timeouts(settings),
        )

    async def stream(self, request: ChatRequest) -> AsyncGenerator[StreamEvent, None]:
        answer = MessageStream()
        with translated(anthropic, self.settings):
            body = wire_request(request)
            async with cast("Events", await self._client.messages.create(**body)) as events:
                await refuse_other_than_stream(events.response)
                async for event in events:
                    for ours in answer.add(as_json(event)):
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

    async def _get(self, path: str) -> Any:
        return json_of(await self._client.get(path, cast_to=httpx2.Response))


def wire_request(request: ChatRequest) -> dict[str, Any]:
    """System texts stand apart; all results of one round of calls belong into one user message."""
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_output_tokens or DEFAULT_MAX_TOKENS,
        "messages": _wire_messages([message for message in request.messages if message.role != "system"]),
        "stream": True,
    }
    system = "\n\n".join(message.content for message in request.messages if message.role == "system")
    if system:
        body["system"] = system
    if request.tools:
        body["tools"] = [_wire_tool(tool) for tool in request.tools]
    return body


def _wire_messages(messages: list[ChatMessage]) -> list[dict[str, Any]]:
    wire = [{"role": "assistant" if m.role == "assistant" else "user", "content": _blocks(m)} for m in messages]
    return [
        {"role": role, "content": [block for message in group for block in message["content"]]}
        for role, group in groupby(wire, key=lambda message: message["role"])
    ]


def _blocks(message: ChatMessage) -> list[dict[str, Any]]:
    if message.role == "tool":
        return [{"type": "tool_result", "tool_use_id": message.tool_call_id, "content": message.content}]
    calls = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": _input(call.arguments)}
        for call in message.tool_calls
    ]
    # An empty text block is refused.
    return [*([{"type": "text", "text": message.content}] if message.content else []), *calls]


def _input(arguments: str) -> dict[str, Any]:
    """The API takes an object only. What the model wrote wrongly is still shown to it."""
    try:
        parsed = json.loads(arguments or "{}")
    except ValueError:
        parsed = arguments
    return parsed if isinstance(parsed, dict) else {"arguments": parsed}


def _wire_tool(tool: dict[str, Any]) -> dict[str, Any]:
    function = as_mapping(tool.get("function"))
    return {
        "name": function.get("name"),
        "description": function.get("description", ""),
        "input_schema": function.get("parameters") or {"type": "object", "properties": {}},
    }
