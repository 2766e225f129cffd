"""What is Anthropic's own: its counts, its reasons, its errors, its messages."""

from __future__ import annotations

from typing import Any

import pytest

from dialogs.providers.anthropic import wire_request
from dialogs.providers.base import (
    ChatMessage,
    Finished,
    ProviderError,
    ProviderFailed,
    ProviderUnreachable,
    RateLimited,
    RequestRefused,
    TextDelta,
    ToolCall,
    ToolCallReady,
    UsageReported,
)
from health.monitor.levels import Usage, UsageUnavailable
from tests.dialogs.providers.upstream import Upstream, as_json, as_stream, named
from tests.dialogs.providers.worlds import (
    Answer,
    AnthropicWorld,
    error_of,
    events_of,
    request,
)

MESSAGES = AnthropicWorld.path
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


def event(kind: str, **rest: Any) -> bytes:
    return named(kind, {"type": kind, **rest})


def message_start(**usage: Any) -> bytes:
    return event("message_start", message={"id": "m", "usage": usage})


async def test_anthropics_final_counts_replace_those_of_the_start(server: Upstream) -> None:
    start = message_start(
        input_tokens=3, cache_read_input_tokens=17_000, cache_creation_input_tokens=700, output_tokens=1
    )
    end = event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 40, "input_tokens": None})
    server.on(MESSAGES, as_stream([start, end, event("message_stop")]))

    events = await events_of(AnthropicWorld(server).provider())

    assert isinstance(events[0], UsageReported)
    assert events[0].usage == Usage(
        prompt_tokens=17_703, completion_tokens=40, total_tokens=17_743, cached_tokens=17_000
    )


async def test_a_count_of_the_first_token_is_not_the_output(server: Upstream) -> None:
    end = event("message_delta", delta={"stop_reason": "end_turn"})
    server.on(MESSAGES, as_stream([message_start(input_tokens=3, output_tokens=1), end, event("message_stop")]))

    events = await events_of(AnthropicWorld(server).provider())

    assert isinstance(events[0], UsageReported)
    assert events[0].usage == UsageUnavailable("output_tokens is missing")


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("tool_use", "tool_calls"),
        ("refusal", "content_filter"),
        ("model_context_window_exceeded", "context_window"),
        ("pause_turn", "pause_turn"),
    ],
)
async def test_anthropics_reasons_have_our_names(server: Upstream, theirs: str, ours: str) -> None:
    end = event("message_delta", delta={"stop_reason": theirs}, usage={"output_tokens": 4})
    server.on(MESSAGES, as_stream([message_start(input_tokens=3), end, event("message_stop")]))

    events = await events_of(AnthropicWorld(server).provider())

    assert events[-1] == Finished(ours)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("overloaded_error", ProviderFailed),
        ("rate_limit_error", RateLimited),
        ("api_error", ProviderFailed),
        ("invalid_request_error", RequestRefused),
    ],
)
async def test_an_anthropic_error_event_is_told_by_its_type(
    server: Upstream, kind: str, expected: type[ProviderError]
) -> None:
    error = event("error", error={"type": kind, "message": "mid-stream"})
    server.on(MESSAGES, as_stream([message_start(input_tokens=3), event("ping"), error]))

    found = await error_of(events_of(AnthropicWorld(server).provider()))

    assert type(found) is expected
    assert "mid-stream" in str(found)


async def test_the_request_is_anthropics(server: Upstream) -> None:
    end = event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 4})
    server.on(MESSAGES, as_stream([message_start(input_tokens=3), end]))
    asked = {"c1": '{"a": 1}', "c2": "{broken", "c3": "[" * 100_000}
    calls = tuple(ToolCall(id=name, name="f", arguments=arguments) for name, arguments in asked.items())
    tool = {"type": "function", "function": {"name": "f", "description": "does"}}

    await events_of(
        AnthropicWorld(server).provider(),
        request(
            ChatMessage(role="system", content="One."),
            ChatMessage(role="system", content="Two."),
            ChatMessage(role="user", content="go"),
            ChatMessage(role="assistant", content="", tool_calls=calls),
            ChatMessage(role="tool", content="42", tool_call_id="c1"),
            ChatMessage(role="tool", content="43", tool_call_id="c2"),
            ChatMessage(role="tool", content="44", tool_call_id="c3"),
            ChatMessage(role="user", content="and?"),
            tools=(tool,),
        ),
    )

    sent = server.asked[0].json
    assert sent["system"] == "One.\n\nTwo."
    assert sent["max_tokens"] == 8192
    assert sent["tools"] == [{"name": "f", "description": "does", "input_schema": {"type": "object", "properties": {}}}]
    assert sent["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "go"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}},
                {"type": "tool_use", "id": "c2", "name": "f", "input": {"arguments": "{broken"}},
                # Nested without end: shown as it is.
                {"type": "tool_use", "id": "c3", "name": "f", "input": {"arguments": asked["c3"]}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "42"},
                {"type": "tool_result", "tool_use_id": "c2", "content": "43"},
                {"type": "tool_result", "tool_use_id": "c3", "content": "44"},
                {"type": "text", "text": "and?"},
            ],
        },
    ]


async def test_anthropics_window_is_read_by_name(server: Upstream) -> None:
    server.on("/v1/models/small", as_json({"id": "small", "max_input_tokens": 200_000, "max_tokens": 64_000}))

    limits = await AnthropicWorld(server).provider().read_limits("small")

    assert (limits.context_length, limits.output_length) == (200_000, 64_000)


async def test_blocks_may_begin_with_what_others_send_in_deltas(server: Upstream) -> None:
    blocks = [
        {"type": "text", "text": "Hi"},
        {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}},
        {"type": "tool_use", "id": "c2", "name": "g", "input": {}},
        {"type": "redacted_thinking", "data": "opaque"},
    ]
    begun = [event("content_block_start", index=place, content_block=block) for place, block in enumerate(blocks)]
    ended = [event("content_block_stop", index=place) for place in range(len(blocks))]
    strange = [event("content_block_delta", index="x", delta={"type": "signature_delta", "signature": "s"})]
    end = event("message_delta", delta={"stop_reason": "tool_use"}, usage={"output_tokens": 4})
    server.on(MESSAGES, as_stream([message_start(input_tokens=3), *begun, *strange, *ended, end]))

    events = await events_of(AnthropicWorld(server).provider())

    assert [event for event in events if isinstance(event, TextDelta | ToolCallReady)] == [
        TextDelta("Hi"),
        ToolCallReady(ToolCall(id="c1", name="f", arguments='{"a": 1}')),
        ToolCallReady(ToolCall(id="c2", name="g", arguments="{}")),
    ]


async def test_a_message_that_never_ends_is_not_whole(server: Upstream) -> None:
    server.on(MESSAGES, as_stream([message_start(input_tokens=3)]))

    assert isinstance(await error_of(events_of(AnthropicWorld(server).provider())), ProviderUnreachable)


def image(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def blocks_of(*parts: dict[str, Any], role: str = "user") -> Any:
    message = ChatMessage(role=role, content="", parts=parts, tool_call_id="c1" if role == "tool" else None)
    return wire_request(request(message))["messages"][0]["content"]


def test_parts_become_blocks_in_their_order_and_a_result_may_hold_them() -> None:
    pdf = {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBE"}}
    # An empty text is no block.
    texts = text("See"), text(""), text("?")
    parts = (texts[0], image("data:image/png;base64,iVBO"), image("https://host/a.png"), pdf, *texts[1:])

    blocks = blocks_of(*parts)

    (result,) = blocks_of(*parts, role="tool")
    assert (result["type"], result["content"]) == ("tool_result", blocks)
    assert blocks == [
        text("See"),
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}},
        {"type": "image", "source": {"type": "url", "url": "https://host/a.png"}},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"}},
        text("?"),
    ]


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
