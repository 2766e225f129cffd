"""A request in the form of OpenAI's chat completions. Pure: ours in, theirs out."""

from __future__ import annotations

from typing import Any

from dialogs.providers.base import ChatMessage, ChatRequest
from dialogs.providers.options import OF_OPENAI, OF_OTHERS, OF_TOOLS, chosen


def wire_request(request: ChatRequest, *, of_openai: bool = False) -> dict[str, Any]:
    """`of_openai` is for OpenAI's own service, which has renamed one field and refuses what it does not know."""
    body: dict[str, Any] = {
        "model": request.model,
        "stream": True,
        "messages": [wire_message(message) for message in request.messages],
    }
    if request.max_output_tokens:
        body["max_completion_tokens" if of_openai else "max_tokens"] = request.max_output_tokens
    body["stream_options"] = {"include_usage": True}
    if request.tools:
        # A choice of tools is refused where there are none to choose from.
        body |= {"tools": list(request.tools)} | chosen(request.options, OF_TOOLS)
    if request.continues and not of_openai:
        # vLLM and its like want to be told; llama.cpp and others do so anyway.
        body |= {"continue_final_message": True, "add_generation_prompt": False}
    return body | chosen(request.options, OF_OPENAI if of_openai else OF_OTHERS)


def wire_message(message: ChatMessage) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": message.role, "content": list(message.parts) or message.content}
    if message.name:
        wire["name"] = message.name
    if message.tool_calls:
        # Null, not empty: some servers refuse an empty text beside calls.
        wire["content"] = wire["content"] or None
        wire["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        wire["tool_call_id"] = message.tool_call_id
    return wire
