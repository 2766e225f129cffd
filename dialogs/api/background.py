"""Requests that a client makes for itself: titles, tags, follow-ups. They go to the model and leave nothing behind.

Open WebUI sends them to the model of the chat. They must not become dialogs, be compacted, or move a meter.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest
from django.utils import timezone

from dialogs.api import chunks
from dialogs.api.canonical import split
from dialogs.api.chunks import Envelope
from dialogs.api.failures import failed_with
from dialogs.api.reporting import usage_of
from dialogs.clients import ClientCall
from dialogs.driver.live import LiveAnswer
from dialogs.providers.base import ChatMessage, ChatRequest, ProviderError, ReasoningDelta, TextDelta, ToolCall
from dialogs.providers.pool import borrowed
from dialogs.providers.slots import slot
from dialogs.selectors.providers import settings_for
from health.compaction import wire

if TYPE_CHECKING:
    from dialogs.api.reading import Asked

TASK_HEADER = "x-dominds-task"
TASK_MARK = "### Task:"


def is_background(request: HttpRequest, messages: Sequence[Mapping[str, Any]]) -> bool:
    """Said by a header, or by how Open WebUI's prompts begin."""
    task = request.headers.get(TASK_HEADER, "").strip()
    if task and not task.startswith("{{"):
        return True
    last = messages[-1]
    return last["role"] == "user" and wire.text_of(last).lstrip().startswith(TASK_MARK)


async def whole(asked: Asked, sent: Envelope) -> dict[str, Any]:
    """The body of the answer. Raises ApiError."""
    live = LiveAnswer()
    try:
        async for _piece in _pieces(asked, sent, live):
            pass
    except ProviderError as error:
        raise failed_with(error) from error
    calls, reason = _ending(live)
    message = chunks.message(live.text, live.reasoning, calls)
    return sent.whole(message, finish_reason=reason, usage=usage_of(live.usage), ours={})


async def stream(asked: Asked, sent: Envelope) -> AsyncGenerator[bytes, None]:
    """Every byte of a streamed answer."""
    live = LiveAnswer()
    yield sent.role()
    try:
        async with aclosing(_pieces(asked, sent, live)) as pieces:
            async for piece in pieces:
                yield piece
    except ProviderError as error:
        yield chunks.event(failed_with(error).as_json())
        return
    calls, reason = _ending(live)
    for last in chunks.ending(sent, calls, reason, usage_of(live.usage) if asked.wants_usage else None):
        yield last


async def _pieces(asked: Asked, sent: Envelope, live: LiveAnswer) -> AsyncGenerator[bytes, None]:
    """The words as they come. `live` collects what else does."""
    service = asked.target.llm.provider
    async with (
        slot(service.name, most=service.max_concurrent),
        borrowed(settings_for(service)) as provider,
        aclosing(provider.stream(request_of(asked))) as events,
    ):
        async for event in events:
            live.add(event, now=timezone.now())
            match event:
                case TextDelta(text):
                    yield sent.text(text)
                case ReasoningDelta(text):
                    yield sent.thought(text)


def _ending(live: LiveAnswer) -> tuple[list[ClientCall], str]:
    calls = [ClientCall(id=call.id, name=call.name, arguments=call.arguments) for call in live.calls]
    return calls, chunks.finish_reason(live.finish_reason, calls=bool(calls))


def request_of(asked: Asked) -> ChatRequest:
    """What the client wrote, as it is."""
    system, turns = split(asked.messages)
    text = "\n\n".join(filter(None, (asked.target.agent.instructions.strip(), system)))
    first = (ChatMessage(role="system", content=text),) if text else ()
    return ChatRequest(
        model=asked.target.llm.model_id,
        messages=first + tuple(map(_sent, turns)),
        tools=tuple(map(dict, asked.request.tools)),
        max_output_tokens=asked.request.max_output_tokens,
        options=asked.request.options,
    )


def _sent(message: Mapping[str, Any]) -> ChatMessage:
    content = message.get("content")
    parts = content if isinstance(content, list) and not all(map(wire.is_text, content)) else ()
    role = message["role"]
    return ChatMessage(
        role="system" if role == "developer" else role,
        content=wire.text_of(message),
        parts=tuple(parts),
        tool_calls=tuple(ToolCall(id=one.id, name=one.name, arguments=one.arguments) for one in wire.calls_of(message)),
        tool_call_id=message.get("tool_call_id"),
    )
