"""A client's request of `/v1` as values, with the hashes by which its history is recognised. PURE.

A client resends its whole history each time. Every message carries the hash of the prefix that ends with it, so that
the longest prefix that is stored already can be found by one query.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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
