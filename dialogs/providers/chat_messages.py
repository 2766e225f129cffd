"""What is sent to a provider: the messages of a chat, and the request with all that goes along."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """A complete call that the model asked for. `arguments` is the JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, kw_only=True)
class ChatMessage:
    """One message as it is sent. `role` is system, user, assistant or tool.

    `parts` are content parts in OpenAI's form (text, image_url), sent instead of `content` where there are any:
    `content` then is their text. A client's message may have them, and a `name`.
    """

    role: str
    content: str
    parts: tuple[Mapping[str, Any], ...] = ()
    name: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class ChatRequest:
    """What one generation sends. `tools` are JSON schemas in OpenAI's function form.

    `context_window` is what a server is asked to set aside, where one can be asked (Ollama); the others ignore it.
    `continues`: the last message is the agent's, and the answer is to go on with it as if it had never stopped.
    `options` are a client's own, under OpenAI's names: temperature, stop, tool_choice, response_format and the like. A
    provider passes on those that its service has, and leaves out the others.
    """

    model: str
    messages: tuple[ChatMessage, ...]
    tools: tuple[dict[str, Any], ...] = ()
    max_output_tokens: int | None = None
    context_window: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    continues: bool = False
