"""What is Anthropic's own: its counts, its reasons, its errors, its messages."""

from __future__ import annotations

from typing import Any

import pytest

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
from health.monitor.usage import Usage, UsageUnavailable
from tests.dialogs.providers.upstream import Upstream, as_json, as_stream, named
from tests.dialogs.providers.worlds import (
    AnthropicWorld,
    error_of,
    events_of,
    request,
)

MESSAGES = AnthropicWorld.path


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
    calls = (ToolCall(id="c1", name="f", arguments='{"a": 1}'), ToolCall(id="c2", name="f", arguments="{broken"))
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
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "42"},
                {"type": "tool_result", "tool_use_id": "c2", "content": "43"},
                {"type": "text", "text": "and?"},
            ],
        },
    ]


async def test_arguments_nested_without_end_are_shown_as_they_are(server: Upstream) -> None:
    end = event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 4})
    server.on(MESSAGES, as_stream([message_start(input_tokens=3), end]))
    deep = "[" * 100_000

    await events_of(
        AnthropicWorld(server).provider(),
        request(
            ChatMessage(role="user", content="go"),
            ChatMessage(role="assistant", content="", tool_calls=(ToolCall(id="c1", name="f", arguments=deep),)),
            ChatMessage(role="tool", content="42", tool_call_id="c1"),
        ),
    )

    assert server.asked[0].json["messages"][1]["content"][0]["input"] == {"arguments": deep}


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
