"""Anthropic's messages API, through the official SDK, and services that copy it: the client, the request as Anthropic
writes it, and an answer put together from the events of its stream."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import dropwhile, groupby, takewhile
from operator import itemgetter
from typing import Any, ClassVar
from urllib.parse import quote

import anthropic
import httpx2

from dialogs.providers.addresses import api_root
from dialogs.providers.base import (
    ArgumentsDelta,
    BadAnswer,
    ChatMessage,
    ChatRequest,
    Finished,
    ModelFacts,
    ProviderSettings,
    ProviderUnreachable,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolCall,
    ToolCallReady,
    UsageReported,
)
from dialogs.providers.chat_stream import PartialCall
from dialogs.providers.errors import translated
from dialogs.providers.http import NOTHING_CAME, as_event, connecting, json_of, refuse_other_than_stream
from dialogs.providers.laws import is_system
from dialogs.providers.options import (
    OF_ANTHROPIC,
    PDF,
    Data,
    ImageAt,
    Text,
    arguments_of,
    as_texts,
    chosen,
    read_part,
    refused,
    schema_of,
)
from dialogs.providers.usage import Dialect, as_mapping, as_text, facts_in, facts_of, normalise, recordable

# The SDK would otherwise look for a key in the environment and on the disk.
NO_KEY = "none"
MOST_MODELS = 1000

Events = anthropic.AsyncStream[object]
# The API requires `max_tokens`; every current model accepts this value.
DEFAULT_MAX_TOKENS = 8_192
TOOL_CHOICES = {"auto": "auto", "none": "none", "required": "any"}
FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
    "model_context_window_exceeded": "context_window",
}


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
        """Send and read plain JSON: the SDK's typed objects cost more than the request."""
        body = wire_request(request)
        return await self._client.post("/v1/messages", cast_to=object, body=body, stream=True, stream_cls=Events)

    async def _get(self, path: str) -> Any:
        return json_of(await self._client.get(path, cast_to=httpx2.Response))


def wire_request(request: ChatRequest) -> dict[str, Any]:
    """System texts are a field of their own; all results of one round go into one user message."""
    system = "\n\n".join(message.content for message in takewhile(is_system, request.messages))
    body: dict[str, Any] = {
        "max_tokens": request.max_output_tokens or DEFAULT_MAX_TOKENS,
        "messages": _wire_messages(list(dropwhile(is_system, request.messages))),
        "model": request.model,
        "stream": True,
    }
    if system:
        body["system"] = system
    if request.tools:
        body |= {"tools": [_wire_tool(tool) for tool in request.tools]} | _tool_choice(request.options)
    return body | _options(request.options)


def _wire_messages(messages: list[ChatMessage]) -> list[dict[str, Any]]:
    """One message for each run of one role. Empty messages are left out: the API refuses them."""
    if messages and not _blocks(messages[-1]):
        raise refused("The last message is empty, and this service takes no empty message.")
    said = [("assistant" if m.role == "assistant" else "user", blocks) for m in messages if (blocks := _blocks(m))]
    return [
        {"role": role, "content": [block for _role, blocks in group for block in blocks]}
        for role, group in groupby(said, key=itemgetter(0))
    ]


def _blocks(message: ChatMessage) -> list[dict[str, Any]]:
    if message.role == "tool":
        content = _said(message) if message.parts else message.content
        return [{"type": "tool_result", "tool_use_id": message.tool_call_id, "content": content}]
    if message.role == "system":
        # After the first turn only some models take this role. Joined to the instructions it would hold from the
        # beginning, and everything that the service has cached would have to be read again.
        return [{"type": "text", "text": f"<system>\n{message.content}\n</system>"}]
    calls = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments_of(call)}
        for call in message.tool_calls
    ]
    return [*_said(message), *calls]


def _said(message: ChatMessage) -> list[dict[str, Any]]:
    blocks = [_block(part) for part in message.parts] or [{"type": "text", "text": message.content}]
    # An empty text block is refused.
    return [block for block in blocks if block.get("text") != ""]


def _block(part: Any) -> dict[str, Any]:
    match read_part(part):
        case Text(text):
            return {"type": "text", "text": text}
        case ImageAt(url):
            return {"type": "image", "source": {"type": "url", "url": url}}
        case Data(media_type, content) as data if data.is_image or media_type == PDF:
            source = {"type": "base64", "media_type": media_type, "data": content}
            return {"type": "image" if data.is_image else "document", "source": source}
        case Data(media_type):
            raise refused(f"Of files it takes images and {PDF}, and this is {media_type!r}.")


def _wire_tool(tool: dict[str, Any]) -> dict[str, Any]:
    function = as_mapping(tool.get("function"))
    return {
        "name": function.get("name"),
        "description": function.get("description", ""),
        "input_schema": function.get("parameters") or {"type": "object", "properties": {}},
    }


def _tool_choice(options: Any) -> dict[str, Any]:
    """A choice of "auto" is what happens anyway; "one call at a time" has no other place to stand."""
    wished = options.get("tool_choice")
    one_at_a_time = {"disable_parallel_tool_use": True} if options.get("parallel_tool_calls") is False else {}
    name = as_text(as_mapping(as_mapping(wished).get("function")).get("name"))
    if name:
        return {"tool_choice": {"type": "tool", "name": name} | one_at_a_time}
    kind = TOOL_CHOICES.get(as_text(wished), "auto")
    choice = {"type": kind} | (one_at_a_time if kind != "none" else {})
    return {} if choice == {"type": "auto"} else {"tool_choice": choice}


def _options(options: Any) -> dict[str, Any]:
    """Two follow what Anthropic's own layer for OpenAI's clients does: the temperature ends at 1, and sequences of
    nothing but white space, which the API refuses, do not stop an answer."""
    body = chosen(options, OF_ANTHROPIC)
    if isinstance(body.get("temperature"), int | float):
        body["temperature"] = min(body["temperature"], 1)
    if "stop_sequences" in body:
        body["stop_sequences"] = [text for text in as_texts(body["stop_sequences"]) if text.strip()]
    if user := as_text(options.get("user")):
        body["metadata"] = {"user_id": user}
    if schema := schema_of(options.get("response_format")):
        body["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
    return body


@dataclass
class MessageStream:
    calls: dict[int, PartialCall] = field(default_factory=dict)
    at_start: dict[str, Any] = field(default_factory=dict)
    at_end: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
    heard: bool = False
    begun: bool = False

    def add(self, event: Mapping[str, Any]) -> Iterator[StreamEvent]:
        self.heard = True
        kind, index = event.get("type"), event.get("index")
        place = index if isinstance(index, int) else 0
        if kind == "message_start":
            self.begun = True
            self.at_start = dict(as_mapping(as_mapping(event.get("message")).get("usage")))
        elif kind == "content_block_start":
            yield from self._begin_block(place, as_mapping(event.get("content_block")))
        elif kind == "content_block_delta":
            yield from self._add_to_block(place, as_mapping(event.get("delta")))
        elif kind == "content_block_stop" and place in self.calls:
            yield self._finish_call(self.calls.pop(place))
        elif kind == "message_delta":
            self.reason = as_text(as_mapping(event.get("delta")).get("stop_reason")) or self.reason
            self.at_end |= {name: count for name, count in as_mapping(event.get("usage")).items() if count is not None}

    def end(self) -> Iterator[StreamEvent]:
        """The last events of a complete answer. Raises a ProviderError when the answer is incomplete."""
        if not self.heard:
            raise ProviderUnreachable(NOTHING_CAME)
        if not self.begun:
            raise BadAnswer("The provider's answer is no message stream.")
        if not self.reason:
            raise ProviderUnreachable("The stream ended before the answer was complete.")
        raw = self._usage()
        yield UsageReported(normalise(raw or None, dialect=Dialect.ANTHROPIC), recordable(raw) or None)
        yield Finished(FINISH_REASONS.get(self.reason, self.reason))

    def _usage(self) -> dict[str, Any]:
        """The counts at the end are totals: they replace those of the start, whose output is of one token only."""
        begun = {name: count for name, count in self.at_start.items() if name != "output_tokens"}
        return begun | self.at_end

    def _begin_block(self, place: int, block: Mapping[str, Any]) -> Iterator[StreamEvent]:
        if block.get("type") == "tool_use":
            given = block.get("input")
            whole = json.dumps(given) if given else ""
            self.calls[place] = PartialCall(as_text(block.get("id")), as_text(block.get("name")), whole)
            if whole:
                yield ArgumentsDelta(whole)
        elif text := as_text(block.get("text")):
            yield TextDelta(text)

    def _add_to_block(self, place: int, delta: Mapping[str, Any]) -> Iterator[StreamEvent]:
        if text := as_text(delta.get("text")):
            yield TextDelta(text)
        elif thought := as_text(delta.get("thinking")):
            yield ReasoningDelta(thought)
        elif place in self.calls and (piece := as_text(delta.get("partial_json"))):
            self.calls[place].arguments += piece
            yield ArgumentsDelta(piece)

    def _finish_call(self, call: PartialCall) -> ToolCallReady:
        return ToolCallReady(ToolCall(id=call.id, name=call.name, arguments=call.arguments or "{}"))
