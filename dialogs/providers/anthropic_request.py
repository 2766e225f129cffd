"""A request in the form of Anthropic's messages API. Pure: ours in, theirs out."""

from __future__ import annotations

import json
from itertools import dropwhile, groupby, takewhile
from operator import itemgetter
from typing import Any

from dialogs.providers.base import ChatMessage, ChatRequest
from dialogs.providers.options import OF_ANTHROPIC, as_texts, chosen, schema_of
from dialogs.providers.parts import PDF, Data, ImageAt, Text, read_part, refused
from dialogs.providers.wire import as_mapping, as_text

# The API insists on a ceiling for the answer; every current model takes this one.
DEFAULT_MAX_TOKENS = 8_192
TOOL_CHOICES = {"auto": "auto", "none": "none", "required": "any"}


def wire_request(request: ChatRequest) -> dict[str, Any]:
    """System texts stand apart; all results of one round of calls belong into one user message."""
    system = "\n\n".join(message.content for message in takewhile(_is_system, request.messages))
    body: dict[str, Any] = {
        "max_tokens": request.max_output_tokens or DEFAULT_MAX_TOKENS,
        "messages": _wire_messages(list(dropwhile(_is_system, request.messages))),
        "model": request.model,
        "stream": True,
    }
    if system:
        body["system"] = system
    if request.tools:
        body |= {"tools": [_wire_tool(tool) for tool in request.tools]} | _tool_choice(request.options)
    return body | _options(request.options)


def _is_system(message: ChatMessage) -> bool:
    return message.role == "system"


def _wire_messages(messages: list[ChatMessage]) -> list[dict[str, Any]]:
    """One message a turn: a message without content is refused, and of an empty one nothing can be sent."""
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
        {"type": "tool_use", "id": call.id, "name": call.name, "input": _input(call.arguments)}
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


def _input(arguments: str) -> dict[str, Any]:
    """The API takes an object only. What the model wrote wrongly is still shown to it."""
    try:
        parsed = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        parsed = arguments
    return parsed if isinstance(parsed, dict) else {"arguments": parsed}


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
