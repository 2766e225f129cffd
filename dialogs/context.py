"""The border post between what is stored and what is sent. The only file that knows both."""

from __future__ import annotations

from collections.abc import Sequence

from dialogs.models import Agent, Message
from dialogs.models.message import Role
from dialogs.providers.base import ChatMessage, ChatRequest


def chat_request(*, model_id: str, agent: Agent, messages: Sequence[Message]) -> ChatRequest:
    """The request for the next generation: instructions first, then the branch as it was said."""
    system = (ChatMessage(role="system", content=agent.instructions),) if agent.instructions.strip() else ()
    return ChatRequest(
        model=model_id,
        messages=system + tuple(_wire(message) for message in messages if message.content),
        max_output_tokens=agent.max_output_tokens,
    )


def _wire(message: Message) -> ChatMessage:
    return ChatMessage(role=Role(message.role).value, content=message.content)
