"""A client's request of `/v1` as values, and the hashes by which its history is recognised: its messages made canonical
(instructions separated, our notices removed), every prefix hashed. PURE.

A client resends its whole history each time. Every message carries the hash of the prefix that ends with it, so that
the longest prefix that is stored already can be found by one query. Clients write the same message in several ways
(content as text or parts, other white space in arguments, our notices or the model's reasoning in the text): equal
meanings get equal hashes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dialogs.api.chunks import without_notices
from dialogs.common.text import storable
from dialogs.transcript.attachments import BLOB
from health.compaction.terms import wire

# The same as `json.dumps`, which makes an encoder for each message.
_json = json.JSONEncoder(ensure_ascii=False).encode
INSTRUCTIONS = frozenset({"system", "developer"})
# Clients that show thoughts may send them back inside the answer (Open WebUI does).
THOUGHTS = re.compile(r"\A\s*(?:<think>.*?</think>|<details type=\"reasoning\".*?</details>)\s*", re.DOTALL)


def split(messages: Sequence[Mapping[str, Any]]) -> tuple[str, list[Mapping[str, Any]]]:
    """The instructions before the first turn, and the rest. Instructions alone are a turn themselves."""
    first = next((at for at, message in enumerate(messages) if message["role"] not in INSTRUCTIONS), 0)
    instructions = "\n\n".join(filter(None, map(_text, messages[:first])))
    return instructions, list(messages[first:])


def chained(messages: Iterable[Mapping[str, Any]], *, root: str) -> Iterator[ClientMessage]:
    """The messages with the hash of each prefix. Different roots, such as of two models, never give equal hashes."""
    return following_on(messages, hashlib.sha256(root.encode()).hexdigest())


def following_on(messages: Iterable[Mapping[str, Any]], prefix: str) -> Iterator[ClientMessage]:
    """The messages after the prefix with this hash."""
    for message in messages:
        text, calls = _text(message), _calls(message)
        prefix = following(prefix, canonical(message, text, calls))
        yield ClientMessage(
            role="system" if message["role"] in INSTRUCTIONS else message["role"],
            text=text,
            prefix=prefix,
            wire=_beside(message),
            calls=calls,
            tool_call_id=storable(message.get("tool_call_id") or ""),
        )


def chained_below(messages: Iterable[ClientMessage], prefix: str) -> Iterator[ClientMessage]:
    """The messages with the hashes that they have behind the prefix with this hash."""
    for one in messages:
        prefix = following(prefix, canonical_again(one))
        yield replace(one, prefix=prefix)


def canonical_again(one: ClientMessage) -> str:
    """The canonical form of a message that was read."""
    return canonical({"role": one.role, "tool_call_id": one.tool_call_id, **one.wire}, one.text, one.calls)


def following(prefix: str, said: str) -> str:
    """The hash of a prefix and one message more, both as text."""
    return hashlib.sha256(f"{prefix}\n{said}".encode()).hexdigest()


def answer_said(text: str, calls: Sequence[ClientCall]) -> str:
    """The canonical form of an answer of ours, as the client will send it back."""
    return canonical({"role": "assistant"}, _without_thoughts(text), tuple(calls))


def canonical(message: Mapping[str, Any], text: str, calls: Sequence[ClientCall]) -> str:
    """The canonical text of a message: equal for all ways to write it."""
    media = [_digest(part) for part in _parts(message) if _is_media(part)]
    asked = [(call.id, call.name, _same_arguments(call.arguments)) for call in calls]
    role = "system" if message["role"] in INSTRUCTIONS else message["role"]
    said = [role, text.strip(), media, asked, message.get("tool_call_id") or "", message.get("name") or ""]
    return _json(said)


def _text(message: Mapping[str, Any]) -> str:
    text = storable(wire.text_of(message))
    if message["role"] != "assistant":
        return text
    text = _without_thoughts(without_notices(text))
    return "\n\n".join(filter(None, (text, *map(storable, _refusals(message, has_text=bool(text))))))


def _refusals(message: Mapping[str, Any], *, has_text: bool) -> Iterator[str]:
    """The texts of refusals, wherever the client has them: they are the model's words too."""
    parts = [part.get("refusal") for part in _parts(message) if _is_refusal(part)]
    beside = message.get("refusal") if not has_text and not any(parts) else None
    yield from (said for said in (*parts, beside) if isinstance(said, str))


def _is_refusal(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "refusal"


def _without_thoughts(text: str) -> str:
    return THOUGHTS.sub("", text, count=1)


def _calls(message: Mapping[str, Any]) -> tuple[ClientCall, ...]:
    return tuple(
        ClientCall(id=storable(call.id), name=storable(call.name), arguments=storable(call.arguments))
        for call in wire.calls_of(message)
    )


def _beside(message: Mapping[str, Any]) -> dict[str, Any]:
    """What is stored and sent beside the text: all parts where some are no text, and a name."""
    parts = [_as_text(part) for part in _parts(message)]
    found: dict[str, Any] = {}
    if any(map(_is_media, parts)):
        found["content"] = _storable(parts)
    if message.get("name"):
        found["name"] = storable(message["name"])
    return found


def _is_media(part: Any) -> bool:
    return not wire.is_text(part) and not _is_refusal(part)


def _as_text(part: Any) -> Any:
    """Only OpenAI's own service knows parts that refuse."""
    return {"type": "text", "text": part.get("refusal") or ""} if _is_refusal(part) else part


def _parts(message: Mapping[str, Any]) -> Sequence[Any]:
    content = message.get("content")
    return content if isinstance(content, list) else ()


def _storable(value: Any) -> Any:
    """The same JSON with texts that every database takes."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, Mapping):
        # What we write in place of a kept text must not come from outside: it would be filled in with another's.
        return {} if value.keys() == {BLOB} else {storable(key): _storable(one) for key, one in value.items()}
    return [_storable(one) for one in value] if isinstance(value, list) else value


def _digest(part: Any) -> str:
    return hashlib.sha256(json.dumps(part, sort_keys=True).encode()).hexdigest()


def _same_arguments(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments


# By these a client says in which conversation it is.
DIALOG_HEADER = "x-dominds-dialog"
CHAT_HEADERS = ("x-dominds-chat", "x-openwebui-chat-id")


def chat_in(headers: Mapping[str, str]) -> str:
    """The client's own name of the conversation; empty where it says none."""
    found = (headers.get(name, "").strip() for name in CHAT_HEADERS)
    # A template that the client did not fill in is no name.
    return next((chat[:200] for chat in found if chat and not chat.startswith("{{")), "")


@dataclass(frozen=True, kw_only=True)
class ClientCall:
    """A call in a message that a client sends; `arguments` is JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, kw_only=True)
class ClientMessage:
    """`text` is all text of it; `wire` what goes along beside that: {"content": parts} with images, {"name"}.

    `prefix` is the hash of the history up to and with this message, in hexadecimal.
    """

    role: str
    text: str
    prefix: str
    wire: Mapping[str, Any] = field(default_factory=dict)
    calls: tuple[ClientCall, ...] = ()
    tool_call_id: str = ""


@dataclass(frozen=True, kw_only=True)
class ClientRequest:
    """One request for an answer. `instructions` are the system messages before the first turn.

    `chat` is the client's own name of the conversation, `dialog_id` ours, where it says one.
    """

    model: str
    messages: tuple[ClientMessage, ...]
    instructions: str = ""
    tools: tuple[Mapping[str, Any], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    max_output_tokens: int | None = None
    chat: str = ""
    dialog_id: str = ""
