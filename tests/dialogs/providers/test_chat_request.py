"""What an OpenAI-compatible server is asked when a client has wishes of its own."""

from __future__ import annotations

from typing import Any

import pytest

from dialogs.providers.base import ChatMessage, ToolCall
from dialogs.providers.openai_compatible import wire_message, wire_request
from tests.dialogs.providers.upstream import Upstream, as_stream, data
from tests.dialogs.providers.worlds import LlamaCppWorld, LMStudioWorld, OpenAIWorld, chat_chunk, events_of, request

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO", "detail": "low"}}
CALL = ToolCall(id="c1", name="f", arguments="{}")
OPENAIS = {
    "temperature": 0,
    "stop": ["a"],
    "response_format": {"type": "json_object"},
    "reasoning_effort": "low",
    "user": "u-1",
}
LOCAL = {"top_k": 20, "min_p": 0.1, "chat_template_kwargs": {"enable_thinking": False}, "grammar": "root ::= [0-9]"}


def test_parts_are_sent_as_they_are() -> None:
    parts = ({"type": "text", "text": "What is this?"}, PICTURE, {"type": "input_audio", "input_audio": {}})

    assert wire_message(ChatMessage(role="user", content="What is this?", parts=parts)) == {
        "role": "user",
        "content": list(parts),
    }


def test_parts_stand_beside_calls_too() -> None:
    parts = ({"type": "text", "text": "One moment."},)

    wire = wire_message(ChatMessage(role="assistant", content="One moment.", parts=parts, tool_calls=(CALL,)))

    assert wire["content"] == list(parts)
    assert [call["id"] for call in wire["tool_calls"]] == ["c1"]


def test_a_name_goes_along() -> None:
    wire = wire_message(ChatMessage(role="user", content="Hi", name="Alice"))

    assert wire == {"role": "user", "content": "Hi", "name": "Alice"}


def test_a_system_message_keeps_its_place() -> None:
    messages = [ChatMessage(role=role, content=role) for role in ("system", "user", "system", "user")]

    wire = wire_request(request(*messages))

    assert [message["role"] for message in wire["messages"]] == ["system", "user", "system", "user"]


def test_openai_itself_gets_its_own_options_only() -> None:
    wire = wire_request(request(options=OPENAIS | LOCAL, max_output_tokens=5), of_openai=True)

    assert wire.items() >= OPENAIS.items()
    assert not wire.keys() & LOCAL.keys()
    assert wire["max_completion_tokens"] == 5


def test_other_servers_get_what_they_have_added() -> None:
    wire = wire_request(request(options=OPENAIS | LOCAL, max_output_tokens=5))

    assert wire.items() >= (OPENAIS | LOCAL).items()
    assert wire["max_tokens"] == 5


def test_a_choice_of_tools_goes_only_where_tools_go() -> None:
    options = {"tool_choice": "required", "parallel_tool_calls": False}

    assert wire_request(request(tools=(TOOL,), options=options)).items() >= options.items()
    assert wire_request(request(options=options)) == wire_request(request())


def test_no_option_changes_what_dominds_decides() -> None:
    wishes = {"model": "other", "messages": [], "stream": False, "stream_options": None, "max_tokens": 1, "tools": []}

    assert wire_request(request(options=wishes)) == wire_request(request())


@pytest.mark.parametrize("world", [OpenAIWorld, LMStudioWorld, LlamaCppWorld])
async def test_wishes_arrive_on_the_wire(world: type[OpenAIWorld], server: Upstream) -> None:
    server.on(world.path, as_stream([chat_chunk({"content": "Hi"}), chat_chunk({}, "stop"), data("[DONE]")]))
    message = ChatMessage(role="user", content="Look", parts=(PICTURE,), name="Alice")

    await events_of(world(server).provider(), request(message, options=OPENAIS | LOCAL))

    sent: dict[str, Any] = server.asked[0].json
    assert sent.items() >= (OPENAIS | LOCAL).items()
    assert sent["messages"] == [{"role": "user", "content": [PICTURE], "name": "Alice"}]
