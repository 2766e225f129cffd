"""One message in OpenAI's format: what of it is text, what are calls, what goes along. It only reads.

Content is a string, null, or a list of parts. Legacy `function_call` is read as one call whose id is the
function's name; servers that give calls no id (Ollama) are read as calls of id "".
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from health.compaction.terms.units import Call, Role

# The key under which a message carries marks of ours.
MARKS = "dominds"
ROLES = {**{role.value: role for role in Role}, "function": Role.TOOL}
# A dict is seen at once, others take ten times as long.
OBJECT = (dict, Mapping)
# Not sets: a file may have a type that is a list.
TEXT_PARTS = ("text", "input_text", "output_text")
MEDIA_PARTS = ("image_url", "input_image", "image", "input_audio", "audio", "file", "input_file", "video_url")
_THOUGHT_KEYS = ("reasoning_content", "reasoning", "reasoning_details", "thinking")
_SPOKEN_KEYS = ("refusal", "name")
_PLAIN_KEYS = frozenset({"role", "content", "id", "timestamp"})
# Above this a number of seconds would lie in the year 5138: it is milliseconds.
_MILLISECONDS = 1e11


class InvalidMessages(ValueError):
    """These are not messages in OpenAI's format. The text says which one, and what to do."""


def role_of(message: Mapping[str, Any]) -> Role:
    return ROLES[message["role"]]


def is_result(message: Mapping[str, Any]) -> bool:
    return role_of(message) is Role.TOOL


def answered_by(message: Mapping[str, Any]) -> str:
    """The id of the call that a result answers."""
    key = "name" if message["role"] == "function" else "tool_call_id"
    return str(message.get(key) or "")


def text_of(message: Mapping[str, Any]) -> str:
    """The text of the content; what no encoder takes (lone surrogates) is replaced in it by U+FFFD."""
    content = message.get("content")
    if isinstance(content, str):
        return encodable(content)
    return encodable("\n\n".join(part_text(part) for part in content or () if is_text(part)))


def is_text(part: Any) -> bool:
    return isinstance(part, str) or (isinstance(part, Mapping) and part.get("type") in TEXT_PARTS)


def part_text(part: Any) -> str:
    text = part if isinstance(part, str) else part.get("text")
    return text if isinstance(text, str) else ""


def media_count(message: Mapping[str, Any]) -> int:
    """Images, sounds and files: counted by number, never by their base64."""
    return sum(isinstance(part, Mapping) and part.get("type") in MEDIA_PARTS for part in _parts(message))


def calls_of(message: Mapping[str, Any]) -> tuple[Call, ...]:
    """The calls an assistant asks for, in order."""
    legacy = message.get("function_call")
    if isinstance(legacy, OBJECT):
        name = str(legacy.get("name") or "")
        return (Call(id=name, name=name, arguments=_as_text(legacy.get("arguments"))),)
    return tuple(_call(call) for call in message.get("tool_calls") or ())


def _call(call: Mapping[str, Any]) -> Call:
    asked = call.get("function") or call.get("custom") or {}
    arguments = asked.get("arguments", asked.get("input"))
    return Call(id=str(call.get("id") or ""), name=str(asked.get("name") or ""), arguments=_as_text(arguments))


def thoughts_of(message: Mapping[str, Any]) -> str:
    """Reasoning, in every place where servers put it. It is sent, so it is counted."""
    beside = [_as_text(message[key]) for key in _THOUGHT_KEYS if message.get(key)]
    return "\n".join([*beside, *(_as_text(part) for part in _parts(message) if _is_unread(part))])


def attached_to(message: Mapping[str, Any]) -> str:
    """What is sent with the content and cannot be shortened: reasoning, calls, a name, a refusal, a call's id.

    Calls and ids are framed as templates frame them, in JSON, so that counting this text is counting the frame.
    """
    if message.keys() <= _PLAIN_KEYS and isinstance(message.get("content"), str):
        return ""
    spoken = [str(message[key]) for key in _SPOKEN_KEYS if message.get(key)]
    calls = [f'{{"name": "{call.name}", "arguments": {call.arguments}}}' for call in calls_of(message)]
    answers = [f'{{"call_id": "{message["tool_call_id"]}"}}'] if message.get("tool_call_id") else []
    return encodable("\n".join(text for text in (thoughts_of(message), *spoken, *calls, *answers) if text))


def seconds_of(message: Mapping[str, Any]) -> float:
    """When it was said, as seconds since 1970; 0.0 when it does not say, or says it in no known form."""
    found = message.get("timestamp") or message.get("created_at") or message.get("create_time")
    if not found:
        return 0.0
    try:
        seconds = datetime.fromisoformat(found).timestamp() if isinstance(found, str) else float(found)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    if not math.isfinite(seconds):
        return 0.0
    return seconds / 1000 if seconds > _MILLISECONDS else seconds


def encodable(text: str) -> str:
    """The text itself, unless it holds lone surrogates, which no tokenizer and no provider takes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _parts(message: Mapping[str, Any]) -> Sequence[Any]:
    content = message.get("content")
    return () if content is None or isinstance(content, str) else content


def _is_unread(part: Any) -> bool:
    """A part that is neither text nor media, such as a signed block of reasoning."""
    return isinstance(part, Mapping) and part.get("type") not in TEXT_PARTS + MEDIA_PARTS


def _as_text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, default=str)
