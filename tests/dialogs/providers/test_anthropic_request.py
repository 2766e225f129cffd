"""What Anthropic's API is asked when a client has wishes of its own, in OpenAI's words."""

from __future__ import annotations

from typing import Any

import pytest

from dialogs.providers.anthropic_request import wire_request
from dialogs.providers.base import ChatMessage, RequestRefused, ToolCall
from tests.dialogs.providers.upstream import Upstream
from tests.dialogs.providers.worlds import Answer, AnthropicWorld, error_of, events_of, request

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


def image(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def blocks_of(*parts: dict[str, Any], role: str = "user") -> Any:
    message = ChatMessage(role=role, content="", parts=parts, tool_call_id="c1" if role == "tool" else None)
    return wire_request(request(message))["messages"][0]["content"]


def test_parts_become_blocks_in_their_order() -> None:
    pdf = {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBE"}}

    blocks = blocks_of(text("See"), image("data:image/png;base64,iVBO"), image("https://host/a.png"), pdf, text("?"))

    assert blocks == [
        text("See"),
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}},
        {"type": "image", "source": {"type": "url", "url": "https://host/a.png"}},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"}},
        text("?"),
    ]


def test_a_result_may_hold_a_picture() -> None:
    (result,) = blocks_of(text("The page:"), image("https://host/a.png"), role="tool")

    assert result["type"] == "tool_result"
    assert [block["type"] for block in result["content"]] == ["text", "image"]


def test_an_empty_text_is_no_block() -> None:
    assert blocks_of(text(""), text("Hi")) == [text("Hi")]


@pytest.mark.parametrize(
    "part",
    [
        {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}},
        {"type": "file", "file": {"file_data": "data:text/csv;base64,YQ=="}},
    ],
)
async def test_what_it_cannot_take_is_refused_before_anything_is_sent(server: Upstream, part: dict[str, Any]) -> None:
    message = ChatMessage(role="user", content="", parts=(part,))

    error = await error_of(events_of(AnthropicWorld(server).provider(), request(message)))

    assert isinstance(error, RequestRefused)
    assert error.status == 400
    assert server.asked == []


def test_a_later_system_message_keeps_its_place_under_a_label() -> None:
    roles = ("system", "system", "user", "assistant", "system", "user")
    messages = [ChatMessage(role=role, content=f"{role} {number}") for number, role in enumerate(roles)]

    wire = wire_request(request(*messages))

    assert wire["system"] == "system 0\n\nsystem 1"
    assert wire["messages"] == [
        {"role": "user", "content": [text("user 2")]},
        {"role": "assistant", "content": [text("assistant 3")]},
        {"role": "user", "content": [text("<system>\nsystem 4\n</system>"), text("user 5")]},
    ]


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        ({"temperature": 0.5, "top_p": 0.9, "top_k": 20}, {"temperature": 0.5, "top_p": 0.9, "top_k": 20}),
        # OpenAI's goes up to 2.
        ({"temperature": 1.6}, {"temperature": 1}),
        ({"stop": "END"}, {"stop_sequences": ["END"]}),
        ({"stop": ["END", "\n", " "]}, {"stop_sequences": ["END"]}),
        ({"user": "u-1"}, {"metadata": {"user_id": "u-1"}}),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}},
            {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
        ),
        ({"response_format": {"type": "json_object"}}, {}),
        ({"seed": 1, "presence_penalty": 1, "logit_bias": {"1": 1}, "min_p": 0.1, "reasoning_effort": "low"}, {}),
    ],
)
def test_options_have_its_names(options: dict[str, Any], sent: dict[str, Any]) -> None:
    assert wire_request(request(options=options)) == wire_request(request()) | sent


@pytest.mark.parametrize(
    ("options", "choice"),
    [
        ({"tool_choice": "auto", "parallel_tool_calls": True}, None),
        ({"tool_choice": "none", "parallel_tool_calls": False}, {"type": "none"}),
        ({"tool_choice": "required"}, {"type": "any"}),
        ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, {"type": "tool", "name": "f"}),
        ({"parallel_tool_calls": False}, {"type": "auto", "disable_parallel_tool_use": True}),
        (
            {"tool_choice": "required", "parallel_tool_calls": False},
            {"type": "any", "disable_parallel_tool_use": True},
        ),
        ({"tool_choice": "whatever"}, None),
    ],
)
def test_a_choice_of_tools_has_its_words(options: dict[str, Any], choice: dict[str, Any] | None) -> None:
    assert wire_request(request(tools=(TOOL,), options=options)).get("tool_choice") == choice
    assert "tool_choice" not in wire_request(request(options=options))


async def test_wishes_arrive_on_the_wire(server: Upstream) -> None:
    AnthropicWorld(server).answers(Answer(text=("A dot.",), usage=(10, 2)))
    call = ToolCall(id="c1", name="f", arguments="{}")
    look = ChatMessage(role="user", content="", parts=(image("data:image/png;base64,iVBO"),))
    asked = request(
        look,
        ChatMessage(role="assistant", content="", tool_calls=(call,)),
        ChatMessage(role="tool", content="42", tool_call_id="c1"),
        tools=(TOOL,),
        options={"temperature": 0, "tool_choice": "required", "stop": "END"},
    )

    await events_of(AnthropicWorld(server).provider(), asked)

    assert server.asked[0].json == wire_request(asked)
    assert server.asked[0].json["tool_choice"] == {"type": "any"}
