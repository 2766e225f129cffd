"""Chat completions as servers really send them: what is put together, and what ends in an error."""

from __future__ import annotations

from typing import Any

import pytest

from dialogs.providers.base import (
    ArgumentsDelta,
    ChatMessage,
    Finished,
    Provider,
    ProviderError,
    ProviderFailed,
    ProviderUnreachable,
    RateLimited,
    ReasoningDelta,
    RequestRefused,
    TextDelta,
    ToolCall,
    ToolCallReady,
    UsageReported,
)
from health.monitor.levels import Usage, UsageUnavailable
from tests.dialogs.providers.upstream import Reply, Upstream, as_json, as_stream, data
from tests.dialogs.providers.worlds import (
    KEY,
    OpenAIWorld,
    chat_chunk,
    error_of,
    events_of,
    request,
    usage_chunk,
)

CHAT = OpenAIWorld.path
HELLO, STOP, DONE = chat_chunk({"content": "Hello"}), chat_chunk({}, "stop"), data("[DONE]")
OUT_OF_CREDIT = {"message": "no credit", "code": "insufficient_quota"}


def erring(error: Any) -> Reply:
    """In the stream, after a word."""
    return as_stream([HELLO, data({"error": error})])


@pytest.fixture
def openai(server: Upstream) -> Provider:
    return OpenAIWorld(server).provider()


async def test_of_two_usage_chunks_the_last_complete_one_holds(server: Upstream, openai: Provider) -> None:
    first = usage_chunk({"prompt_tokens": 10, "completion_tokens": 1})
    second = usage_chunk({"prompt_tokens": 10, "completion_tokens": 5})
    broken = usage_chunk({"prompt_tokens": "10", "completion_tokens": -5})
    server.on(CHAT, as_stream([HELLO, first, STOP, second, broken, DONE]))

    events = await events_of(openai)

    assert [event for event in events if isinstance(event, UsageReported)] == [
        UsageReported(
            Usage(prompt_tokens=10, completion_tokens=5, total_tokens=15), {"prompt_tokens": 10, "completion_tokens": 5}
        )
    ]


@pytest.mark.parametrize(
    "usage", [{"prompt_tokens": -10, "completion_tokens": 5}, {"prompt_tokens": "10", "completion_tokens": "5"}, {}, 7]
)
async def test_malformed_usage_is_unavailable_and_kept_for_the_record(
    server: Upstream, openai: Provider, usage: Any
) -> None:
    server.on(CHAT, as_stream([HELLO, STOP, usage_chunk(usage), DONE]))

    events = await events_of(openai)

    assert isinstance(events[-2], UsageReported)
    assert isinstance(events[-2].usage, UsageUnavailable)
    assert events[-2].raw == (usage if isinstance(usage, dict) and usage else {"usage": 7} if usage else None)
    assert events[-1] == Finished("stop")


async def test_what_no_database_stores_is_cleaned_from_the_record(server: Upstream, openai: Provider) -> None:
    usage = {"prompt_tokens": float("nan"), "completion_tokens": 1, "note": "a\x00b\ud800", "deep": [[[[[[[[1]]]]]]]]}
    server.on(CHAT, as_stream([HELLO, STOP, usage_chunk(usage), DONE]))

    events = await events_of(openai)

    assert isinstance(events[-2], UsageReported)
    assert events[-2].raw == {"prompt_tokens": "nan", "completion_tokens": 1, "note": "ab?", "deep": [[[[[[]]]]]]}


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (erring({"message": "boom", "type": "server_error", "code": 500}), ProviderFailed),
        (erring("boom, as a bare text"), ProviderFailed),
        (erring({"message": "busy", "code": 503}), ProviderFailed),
        (erring({"message": "slow down", "type": "rate_limit_error"}), RateLimited),
        (erring({"message": "slow down", "code": 429}), RateLimited),
        (erring({"message": "bad tool", "type": "invalid_request_error"}), RequestRefused),
        (erring(OUT_OF_CREDIT), RequestRefused),
        (as_stream([HELLO, chat_chunk({}, "error"), DONE]), ProviderFailed),
        # A 429 that no retry ends.
        (as_json({"error": OUT_OF_CREDIT}, status=429), RequestRefused),
    ],
)
async def test_an_error_is_told_by_what_it_claims(
    server: Upstream, openai: Provider, reply: Reply, kind: type[ProviderError]
) -> None:
    server.on(CHAT, reply)

    error = await error_of(events_of(openai))

    assert type(error) is kind
    assert error.retryable == (kind is not RequestRefused)


async def test_a_stream_that_ends_without_a_reason_is_not_whole(server: Upstream, openai: Provider) -> None:
    server.on(CHAT, as_stream([HELLO, DONE]))

    error = await error_of(events_of(openai))

    assert isinstance(error, ProviderUnreachable)
    assert "before the answer was complete" in str(error)


async def test_the_second_name_for_reasoning_is_read_too(server: Upstream, openai: Provider) -> None:
    deltas = [
        {"reasoning": "a"},
        {"reasoning_content": "b", "reasoning": "b"},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "c"}]}, {"type": "text", "text": "d"}]},
        {"refusal": "e"},
    ]
    server.on(CHAT, as_stream([*map(chat_chunk, deltas), STOP, DONE]))

    events = await events_of(openai)

    assert events[:5] == [
        ReasoningDelta("a"),
        ReasoningDelta("b"),
        ReasoningDelta("c"),
        TextDelta("d"),
        TextDelta("e"),
    ]


@pytest.mark.parametrize(
    "deltas",
    [
        # An empty name repeated (LM Studio before 0.3.16), and the whole one.
        [
            {"index": 0, "id": "c1", "function": {"name": "f", "arguments": ""}},
            {"index": 0, "id": None, "function": {"name": "", "arguments": '{"a"'}},
            {"index": 0, "function": {"name": "f", "arguments": ": 1}"}},
        ],
        # Whole at once, without an index; arguments as an object.
        [{"id": "c1", "function": {"name": "f", "arguments": {"a": 1}}}],
        # A later piece without index or id.
        [{"id": "c1", "function": {"name": "f", "arguments": '{"a"'}}, {"function": {"arguments": ": 1}"}}],
        # Another id with every piece (vLLM).
        [
            {"index": 0, "id": "c1", "function": {"name": "f", "arguments": ""}},
            {"index": 0, "id": "c2", "function": {"name": None, "arguments": '{"a": 1}'}},
        ],
    ],
)
async def test_tool_calls_are_put_together_whatever_the_server_repeats(
    server: Upstream, openai: Provider, deltas: list[dict[str, Any]]
) -> None:
    chunks = [chat_chunk({"tool_calls": [delta]}) for delta in deltas]
    server.on(CHAT, as_stream([*chunks, chat_chunk({}, "tool_calls"), DONE]))

    events = await events_of(openai)

    assert next(event for event in events if not isinstance(event, ArgumentsDelta)) == ToolCallReady(
        ToolCall(id="c1", name="f", arguments='{"a": 1}')
    )


async def test_calls_that_share_an_index_are_told_apart_by_their_ids(server: Upstream, openai: Provider) -> None:
    """Ollama's chat completions, and gateways to Gemini: every call has index 0."""
    deltas = [
        {"index": 0, "id": "c1", "function": {"name": "write", "arguments": '{"file": "a"}'}},
        {"index": 0, "id": "c2", "function": {"name": "write", "arguments": '{"file"'}},
        {"index": 0, "function": {"arguments": ': "b"}'}},
        {"index": 0, "id": "c3", "function": {"name": "read", "arguments": "{}"}},
    ]
    chunks = [chat_chunk({"tool_calls": [delta]}) for delta in deltas]
    server.on(CHAT, as_stream([*chunks, chat_chunk({}, "tool_calls"), DONE]))

    events = await events_of(openai)

    assert [event.call for event in events if isinstance(event, ToolCallReady)] == [
        ToolCall(id="c1", name="write", arguments='{"file": "a"}'),
        ToolCall(id="c2", name="write", arguments='{"file": "b"}'),
        ToolCall(id="c3", name="read", arguments="{}"),
    ]


async def test_a_call_without_an_id_gets_one(server: Upstream, openai: Provider) -> None:
    chunk = chat_chunk({"tool_calls": [{"index": 2, "function": {"name": "f", "arguments": "{}"}}]})
    server.on(CHAT, as_stream([chunk, chat_chunk({}, "function_call"), DONE]))

    events = await events_of(openai)

    assert next(event for event in events if not isinstance(event, ArgumentsDelta)) == ToolCallReady(
        ToolCall(id="call_2", name="f", arguments="{}")
    )
    assert events[-1] == Finished("tool_calls")


@pytest.mark.parametrize(
    "strange",
    [
        {"choices": None},
        {"choices": "none"},
        {"choices": [None]},
        {"choices": [{"delta": None}]},
        {"choices": [{"delta": {"content": 5, "tool_calls": "x"}}]},
        {"choices": [{"delta": {"tool_calls": [None, {"function": 3}]}, "finish_reason": 9}]},
        {"object": "something.else"},
        b": OPENROUTER PROCESSING\n\n",
    ],
)
async def test_a_chunk_of_a_strange_shape_and_a_comment_are_passed_over(
    server: Upstream, openai: Provider, strange: Any
) -> None:
    server.on(CHAT, as_stream([strange if isinstance(strange, bytes) else data(strange), HELLO, STOP, DONE]))

    events = await events_of(openai)

    assert events[0] == TextDelta("Hello")
    assert events[-1] == Finished("stop")


async def test_a_server_that_does_not_know_stream_options_is_asked_again_without(
    server: Upstream, openai: Provider
) -> None:
    refused = as_json({"error": {"message": "Extra inputs are not permitted: stream_options"}}, status=422)
    server.on(CHAT, refused, as_stream([HELLO, STOP, DONE]))

    events = await events_of(openai)

    assert events[0] == TextDelta("Hello")
    assert "stream_options" in server.asked[0].json
    assert "stream_options" not in server.asked[1].json


async def test_the_request_is_openais(server: Upstream, openai: Provider) -> None:
    server.on(CHAT, as_stream([HELLO, STOP, DONE]))
    call = ToolCall(id="c1", name="f", arguments="{}")
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}

    await events_of(
        openai,
        request(
            ChatMessage(role="user", content="go"),
            ChatMessage(role="assistant", content="", tool_calls=(call,)),
            ChatMessage(role="tool", content="42", tool_call_id="c1"),
            tools=(tool,),
            max_output_tokens=50,
        ),
    )

    sent = server.asked[0]
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert sent.json == {
        "model": "small",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 50,
        "tools": [tool],
        "messages": [
            {"role": "user", "content": "go"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
            },
            {"role": "tool", "content": "42", "tool_call_id": "c1"},
        ],
    }


# The models lists of servers that each added a field of their own to OpenAI's.


@pytest.mark.parametrize(
    ("entry", "window", "output"),
    [
        ({"context_length": 131_072}, 131_072, None),
        # OpenRouter: the host allows less than the model could do.
        (
            {"context_length": 262_144, "top_provider": {"context_length": 131_072, "max_completion_tokens": 16_384}},
            131_072,
            16_384,
        ),
        ({"max_model_len": 2048}, 2048, None),
        ({"max_model_len": None}, None, None),
        ({"context_window": 8192, "max_completion_tokens": 4096}, 8192, 4096),
        ({"max_context_length": 32_768}, 32_768, None),
        ({"context_length": 0}, None, None),
        ({"context_length": "big"}, None, None),
    ],
)
async def test_each_list_has_its_own_word_for_the_window(
    server: Upstream, openai: Provider, entry: dict[str, Any], window: int | None, output: int | None
) -> None:
    server.on("/v1/models", as_json({"data": [{"id": "small", **entry}]}))

    limits = await openai.read_limits("small")

    assert (limits.context_length, limits.output_length) == (window, output)
