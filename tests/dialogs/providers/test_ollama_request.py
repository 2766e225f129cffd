"""What Ollama is asked when a client has wishes of its own, in OpenAI's words."""

from __future__ import annotations

from typing import Any

import pytest

from dialogs.providers.base import ChatMessage, RequestRefused
from dialogs.providers.ollama_request import wire_request
from tests.dialogs.providers.upstream import Upstream
from tests.dialogs.providers.worlds import Answer, OllamaWorld, error_of, events_of, request

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
LOOK = {"type": "text", "text": "Look"}


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
