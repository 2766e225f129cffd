"""What is Ollama's own: the window that is asked for, what is set aside, and calls without ids."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dialogs.providers.base import (
    BadAnswer,
    ChatMessage,
    ContextOverflow,
    Finished,
    ModelFacts,
    ModelNotFound,
    ProviderFailed,
    RequestRefused,
    TextDelta,
    ToolCall,
    ToolCallReady,
    ToolsRefused,
    UsageReported,
)
from dialogs.providers.ollama import wire_request
from health.monitor.levels import Usage, UsageUnavailable
from tests.dialogs.providers.upstream import Reply, Upstream, as_json
from tests.dialogs.providers.worlds import Answer, OllamaWorld, error_of, events_of, line, request

CHAT, PS, SHOW = "/api/chat", "/api/ps", "/api/show"
TOO_LONG = (
    "the prompt is longer than the context length currently available to the model; shorten the prompt, adjust the "
    "context length in settings, or use a model with a longer context length"
)
SHOWN: dict[str, Any] = {
    "details": {"family": "gemma4", "parameter_size": "4.3B", "quantization_level": "Q4_K_M"},
    "model_info": {"general.architecture": "gemma4", "gemma4.context_length": 131_072},
}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
LOOK = {"type": "text", "text": "Look"}


async def sent(server: Upstream, *messages: ChatMessage, **more: Any) -> Any:
    """The body of one request."""
    world = OllamaWorld(server)
    world.answers(Answer(text=("Hi",), usage=(10, 3)))
    await events_of(world.provider(), request(*messages, **more))
    return server.asked[0].json


async def limits(server: Upstream, *, shown: object = SHOWN, loaded: list[dict[str, Any]]) -> ModelFacts:
    server.on(SHOW, as_json(shown))
    server.on(PS, as_json({"models": loaded}))
    return await OllamaWorld(server).provider().read_limits("gemma4")


def lines(*chunks: dict[str, Any]) -> Reply:
    return Reply(content_type="application/x-ndjson", pieces=tuple(map(line, chunks)))


@pytest.mark.parametrize(
    ("more", "options"),
    [({"context_window": 8192, "max_output_tokens": 100}, {"num_ctx": 8192, "num_predict": 100}), ({}, {})],
    ids=["a-known-window", "none"],
)
async def test_every_request_forbids_dropping_and_asks_for_its_window_with_its_key(
    server: Upstream, more: dict[str, Any], options: dict[str, int]
) -> None:
    body = await sent(server, **more)

    assert (body["truncate"], body["shift"], body["stream"]) == (False, False, True)
    assert body["options"] == options
    assert "tools" not in body
    # For the proxy that wants one.
    assert server.asked[0].headers["authorization"].startswith("Bearer sk-")


async def test_a_result_names_its_tool_and_arguments_go_as_an_object(server: Upstream) -> None:
    deep = "[" * 100_000
    calls = (
        ToolCall(id="call_7", name="read", arguments='{"a": 1}'),
        ToolCall(id="call_8", name="bad", arguments="["),
        ToolCall(id="call_9", name="bad", arguments=deep),
    )

    body = await sent(
        server,
        ChatMessage(role="user", content="Read"),
        ChatMessage(role="assistant", content="", tool_calls=calls),
        ChatMessage(role="tool", content="42", tool_call_id="call_7"),
        ChatMessage(role="tool", content="no", tool_call_id="call_8"),
        ChatMessage(role="tool", content="no", tool_call_id="call_9"),
    )

    assert [call["function"]["arguments"] for call in body["messages"][1]["tool_calls"]] == [
        {"a": 1},
        {"arguments": "["},
        {"arguments": deep},
    ]
    assert [message["tool_name"] for message in body["messages"][2:]] == ["read", "bad", "bad"]


async def test_a_sign_that_some_take_for_the_end_of_a_line_is_part_of_the_text(server: Upstream) -> None:
    """Ollama writes it as it is: a model that repeats a text from an old Windows may say it."""
    said = "Wait\x85 then\u2028go"
    chunks = ({"message": {"content": said}}, {"message": {"content": ""}, "done": True, "done_reason": "stop"})
    raw = "".join(f"{json.dumps(chunk, ensure_ascii=False)}\n" for chunk in chunks).encode()
    pieces = tuple(raw[at : at + 7] for at in range(0, len(raw), 7))
    server.on(CHAT, Reply(content_type="application/x-ndjson", pieces=pieces))

    first, *_rest = await events_of(OllamaWorld(server).provider())

    assert first == TextDelta(said)


async def test_calls_without_ids_get_some_and_end_the_answer_as_calls(server: Upstream) -> None:
    call = {"function": {"name": "add", "arguments": {"text": "你好"}}}
    done = {"message": {"content": ""}, "done": True, "done_reason": "stop", "prompt_eval_count": 9, "eval_count": 2}
    server.on(CHAT, lines({"message": {"tool_calls": [call]}}, {"message": {"tool_calls": [call]}}, done))

    *ready, _usage, finished = await events_of(OllamaWorld(server).provider())

    assert [event for event in ready if isinstance(event, ToolCallReady)] == [
        ToolCallReady(ToolCall(id=f"call_{number}", name="add", arguments='{"text": "你好"}')) for number in (0, 1)
    ]
    assert finished == Finished("tool_calls")


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        ({"prompt_eval_count": 26, "eval_count": 5}, Usage(prompt_tokens=26, completion_tokens=5, total_tokens=31)),
        ({"eval_count": 5}, UsageUnavailable("prompt_eval_count is missing")),
        ({"prompt_eval_count": 0, "eval_count": 5}, UsageUnavailable("prompt_eval_count is 0")),
        ({}, UsageUnavailable("the provider reported no usage")),
    ],
)
async def test_a_count_that_is_absent_is_unknown(server: Upstream, counts: dict[str, int], usage: object) -> None:
    server.on(CHAT, lines({"message": {"content": "Hi"}, "done": False}, {"done": True, **counts}))

    _text, reported, _finished = await events_of(OllamaWorld(server).provider())

    assert isinstance(reported, UsageReported)
    assert reported.usage == usage


@pytest.mark.parametrize(("tells", "asked", "window"), [(True, 1_000_000, 4096), (False, 2048, 2048)])
async def test_an_overflow_tells_what_was_set_aside_or_else_what_was_asked_for(
    server: Upstream, tells: bool, asked: int, window: int
) -> None:
    server.on(CHAT, as_json({"error": TOO_LONG}, status=400))
    if tells:
        server.on(SHOW, as_json(SHOWN))
        server.on(PS, as_json({"models": [{"name": "small:latest", "context_length": 4096}]}))

    error = await error_of(events_of(OllamaWorld(server).provider(), request(context_window=asked)))

    assert isinstance(error, ContextOverflow)
    assert (error.context_window, error.status) == (window, 400)


@pytest.mark.parametrize(
    ("status", "words", "kind"),
    [
        (404, "model 'small' not found", ModelNotFound),
        (400, "small:latest does not support tools", ToolsRefused),
        (500, "model requires more system memory (8 GiB) than is available", ProviderFailed),
    ],
)
async def test_bare_texts_are_told_apart(server: Upstream, status: int, words: str, kind: type[Exception]) -> None:
    server.on(CHAT, as_json({"error": words}, status=status))

    error = await error_of(events_of(OllamaWorld(server).provider()))

    assert isinstance(error, kind)
    assert words in str(error)


async def test_an_error_among_the_lines_ends_the_answer(server: Upstream) -> None:
    server.on(CHAT, lines({"message": {"content": "Hel"}}, {"error": "model runner has unexpectedly stopped"}))

    error = await error_of(events_of(OllamaWorld(server).provider()))

    assert isinstance(error, ProviderFailed)
    assert "unexpectedly stopped" in str(error)


async def test_what_is_set_aside_is_the_window_and_the_trained_maximum_is_not(server: Upstream) -> None:
    found = await limits(server, loaded=[{"name": "gemma4:latest", "context_length": 4096}])

    assert (found.context_length, found.maximum, found.loaded) == (4096, 131_072, True)
    assert found.source == "set aside now, /api/ps"
    assert found.note == "gemma4, 4.3B, Q4_K_M"


async def test_a_model_that_is_not_loaded_has_the_window_of_its_own_file(server: Upstream) -> None:
    shown = SHOWN | {"parameters": 'stop                           "<end>"\nnum_ctx                        2048'}

    found = await limits(server, shown=shown, loaded=[])

    assert (found.context_length, found.loaded) == (2048, False)
    assert found.source == "num_ctx of the model's file, /api/show"


async def test_a_model_that_is_not_loaded_has_no_window_otherwise(server: Upstream) -> None:
    found = await limits(server, loaded=[{"name": "other", "context_length": 4096}])

    assert (found.context_length, found.maximum, found.loaded) == (None, 131_072, False)
    assert "Set a context length to ask for one." in found.note
    assert "131,072 tokens at most" in found.note


async def test_a_model_in_the_cloud_has_all_of_its_window_and_is_not_called_unloaded(server: Upstream) -> None:
    found = await limits(server, shown=SHOWN | {"remote_host": "https://ollama.example"}, loaded=[])

    assert (found.context_length, found.loaded) == (131_072, None)


async def test_every_model_is_listed_with_what_is_set_aside_for_it(server: Upstream) -> None:
    details = {"family": "llama", "parameter_size": "8B", "quantization_level": "Q4_0"}
    server.on("/api/tags", as_json({"models": [{"name": "a:latest", "details": details}, {"model": "b"}]}))
    server.on(PS, as_json({"models": [{"name": "a:latest", "context_length": 4096}]}))

    first, second = await OllamaWorld(server).provider().list_models()

    assert (first.model_id, first.context_length, first.note) == ("a:latest", 4096, "llama, 8B, Q4_0")
    assert (second.model_id, second.context_length, second.loaded) == ("b", None, False)


async def test_another_server_is_told_apart(server: Upstream) -> None:
    server.on("/api/tags", as_json({"error": "Unexpected endpoint or method. (GET /api/tags)"}))

    error = await error_of(OllamaWorld(server).provider().list_models())

    assert isinstance(error, BadAnswer)
    assert "no Ollama" in str(error)


def image(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def test_pictures_stand_beside_the_text() -> None:
    parts = (LOOK, image("data:image/png;base64,iVBO"), image("data:image/jpeg;base64,/9j/"))

    wire = wire_request(request(ChatMessage(role="user", content="Look", parts=parts)))

    assert wire["messages"] == [{"role": "user", "content": "Look", "images": ["iVBO", "/9j/"]}]


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (image("https://host/a.png"), "fetches no images: send them as data URLs"),
        ({"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBE"}}, "'application/pdf'"),
        ({"type": "input_audio", "input_audio": {}}, "'input_audio'"),
    ],
)
async def test_what_it_cannot_take_is_refused_before_anything_is_sent(
    server: Upstream, part: dict[str, Any], words: str
) -> None:
    message = ChatMessage(role="user", content="Look", parts=(LOOK, part))

    error = await error_of(events_of(OllamaWorld(server).provider(), request(message)))

    assert isinstance(error, RequestRefused)
    assert error.status == 400
    assert words in str(error)
    assert server.asked == []


def test_a_system_message_keeps_its_place() -> None:
    messages = [ChatMessage(role=role, content=role) for role in ("system", "user", "system", "user")]

    wire = wire_request(request(*messages))

    assert [message["role"] for message in wire["messages"]] == ["system", "user", "system", "user"]


def test_sampling_goes_among_its_own_options() -> None:
    options = {"temperature": 0, "top_k": 20, "seed": 7, "stop": "END", "repeat_penalty": 1.1, "logit_bias": {"1": 1}}

    wire = wire_request(request(options=options, max_output_tokens=50, context_window=4096))

    assert wire["options"] == {
        "num_ctx": 4096,
        "num_predict": 50,
        "temperature": 0,
        "top_k": 20,
        "seed": 7,
        "stop": ["END"],
        "repeat_penalty": 1.1,
    }
    assert (wire["truncate"], wire["shift"]) == (False, False)


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        ({"response_format": {"type": "json_object"}}, {"format": "json"}),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}}, {"format": SCHEMA}),
        ({"response_format": {"type": "text"}}, {}),
        ({"reasoning_effort": "none"}, {"think": False}),
        ({"reasoning_effort": "minimal"}, {"think": "low"}),
        ({"reasoning_effort": "xhigh"}, {"think": "high"}),
        ({"reasoning_effort": "unheard-of"}, {}),
        ({"think": True, "reasoning_effort": "low"}, {"think": True}),
        ({"think": False}, {"think": False}),
        ({"user": "u-1", "truncate": True, "shift": True, "num_ctx": 1, "keep_alive": 0}, {}),
    ],
)
def test_other_options_have_its_names(options: dict[str, Any], sent: dict[str, Any]) -> None:
    assert wire_request(request(options=options)) == wire_request(request()) | sent


@pytest.mark.parametrize(("choice", "offered"), [("auto", True), ("required", True), ("none", False), (None, True)])
def test_no_tools_are_offered_to_whoever_wants_none_used(choice: str | None, offered: bool) -> None:
    wire = wire_request(request(tools=(TOOL,), options={"tool_choice": choice}))

    assert ("tools" in wire) is offered
    assert "tool_choice" not in wire


async def test_wishes_arrive_on_the_wire(server: Upstream) -> None:
    OllamaWorld(server).answers(Answer(text=("A dot.",)))
    message = ChatMessage(role="user", content="Look", parts=(LOOK, image("data:image/png;base64,iVBO")))
    asked = request(message, options={"temperature": 0, "response_format": {"type": "json_object"}})

    await events_of(OllamaWorld(server).provider(), asked)

    assert server.asked[0].json == wire_request(asked)
