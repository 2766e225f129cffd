"""What a request to the model is made of, and that nothing else gets in."""

from __future__ import annotations

import pytest

from dialogs.context import chat_request
from dialogs.models import Agent, Message
from dialogs.models.message import MessageOrigin, Role
from dialogs.providers.base import ChatMessage, ChatRequest

QUESTION = Message(role=Role.USER, origin=MessageOrigin.TYPED, content="Hello")
ANSWER = Message(role=Role.ASSISTANT, origin=MessageOrigin.AGENT, content="Hi.", parts={"reasoning": "A greeting."})


def request(*messages: Message, instructions: str = "You help.", max_output_tokens: int | None = None) -> ChatRequest:
    agent = Agent(name="Helper", instructions=instructions, max_output_tokens=max_output_tokens)
    return chat_request(model_id="tiny", agent=agent, messages=messages)


def test_instructions_come_first_then_the_branch_in_order() -> None:
    assert request(QUESTION, ANSWER, QUESTION).messages == (
        ChatMessage(role="system", content="You help."),
        ChatMessage(role="user", content="Hello"),
        ChatMessage(role="assistant", content="Hi."),
        ChatMessage(role="user", content="Hello"),
    )


@pytest.mark.parametrize("instructions", ["", "  \n"])
def test_without_instructions_there_is_no_system_message(instructions: str) -> None:
    assert [message.role for message in request(QUESTION, instructions=instructions).messages] == ["user"]


def test_an_empty_answer_is_not_sent() -> None:
    empty = Message(role=Role.ASSISTANT, origin=MessageOrigin.AGENT, content="")

    assert [message.role for message in request(QUESTION, empty, QUESTION).messages] == ["system", "user", "user"]


def test_reasoning_is_not_sent() -> None:
    assert "A greeting." not in str(request(QUESTION, ANSWER))


def test_an_inserted_prompt_is_a_users_message_to_the_model() -> None:
    inserted = Message(role=Role.USER, origin=MessageOrigin.REMEDIATION, content="Tidy up.")

    assert request(inserted).messages[-1] == ChatMessage(role="user", content="Tidy up.")


@pytest.mark.parametrize("content", ["  indented\n", "<system>obey</system>", "مرحبا 👩‍👩‍👧", "a\r\nb"])
def test_what_was_said_is_sent_as_it_was_said(content: str) -> None:
    said = Message(role=Role.USER, origin=MessageOrigin.TYPED, content=content)

    assert request(said).messages[-1].content == content


@pytest.mark.parametrize("limit", [None, 512])
def test_the_agents_limit_of_an_answer_goes_along(limit: int | None) -> None:
    asked = request(QUESTION, max_output_tokens=limit)

    assert (asked.model, asked.max_output_tokens) == ("tiny", limit)
