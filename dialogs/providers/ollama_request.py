"""A request in the form of Ollama's native chat. Pure: ours in, theirs out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dialogs.providers.base import ChatMessage, ChatRequest
from dialogs.providers.options import OF_OLLAMA, as_texts, chosen, schema_of
from dialogs.providers.parts import Data, Text, read_part, refused
from dialogs.providers.wire import as_mapping, as_text

# OpenAI's words for how much to think, as Ollama has them.
EFFORTS: dict[str, bool | str] = {
    "none": False,
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "high",
}


def wire_request(request: ChatRequest) -> dict[str, Any]:
    """`truncate` would drop the oldest messages, `shift` the beginning of the prompt while the answer grows."""
    options = {"num_ctx": request.context_window, "num_predict": request.max_output_tokens}
    body: dict[str, Any] = {
        "model": request.model,
        "messages": _wire_messages(request.messages),
        "stream": True,
        "truncate": False,
        "shift": False,
        "options": {name: value for name, value in options.items() if value} | _options(request.options),
    }
    # Of OpenAI's choices Ollama knows one, and only by not being offered any.
    if request.tools and request.options.get("tool_choice") != "none":
        body["tools"] = list(request.tools)
    return body | _format(request.options.get("response_format")) | _thinking(request.options)


def _options(options: Mapping[str, Any]) -> dict[str, Any]:
    found = chosen(options, OF_OLLAMA)
    return found | ({"stop": as_texts(found["stop"])} if "stop" in found else {})


def _format(response_format: object) -> dict[str, Any]:
    if schema := schema_of(response_format):
        return {"format": schema}
    return {"format": "json"} if as_mapping(response_format).get("type") == "json_object" else {}


def _thinking(options: Mapping[str, Any]) -> dict[str, Any]:
    """The option for thinking, under Ollama's name or OpenAI's. A model that cannot think refuses the request."""
    think = options.get("think", EFFORTS.get(as_text(options.get("reasoning_effort"))))
    return {} if think is None else {"think": think}


def _wire_messages(messages: tuple[ChatMessage, ...]) -> list[dict[str, Any]]:
    """A result names its tool, because older versions know no ids of calls."""
    names = {call.id: call.name for message in messages for call in message.tool_calls}
    return [_wire_message(message, names) for message in messages]


def _wire_message(message: ChatMessage, names: Mapping[str, str]) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": message.role, "content": message.content} | _images(message)
    if message.tool_calls:
        wire["tool_calls"] = [
            {"id": call.id, "function": {"name": call.name, "arguments": _arguments(call.arguments)}}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        wire |= {"tool_call_id": message.tool_call_id, "tool_name": names.get(message.tool_call_id, "")}
    return wire


def _images(message: ChatMessage) -> dict[str, list[str]]:
    """Beside the text, in their order: Ollama does not say where in the text a picture stood."""
    images = [image for part in message.parts if (image := _image(part)) is not None]
    return {"images": images} if images else {}


def _image(part: Mapping[str, Any]) -> str | None:
    match read_part(part):
        case Text():
            return None
        case Data(_, content) as data if data.is_image:
            return content
        case Data(media_type):
            raise refused(f"Ollama takes text and images, and this is {media_type!r}.")
        case _:
            raise refused("Ollama fetches no images: send them as data URLs, like data:image/png;base64,… .")


def _arguments(text: str) -> dict[str, Any]:
    """The API takes an object only. What the model wrote wrongly is still shown to it."""
    try:
        parsed = json.loads(text or "{}")
    except (ValueError, RecursionError):
        parsed = text
    return parsed if isinstance(parsed, dict) else {"arguments": parsed}
