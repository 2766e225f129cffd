"""The scripted provider: what it plays, what it refuses, what it keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings

from dialogs.providers.base import (
    ChatMessage,
    ChatRequest,
    ContextOverflow,
    Finished,
    NotConfigured,
    ProviderError,
    ProviderSettings,
    RateLimited,
    ReasoningDelta,
    RequestRefused,
    TextDelta,
    ToolCall,
    UsageReported,
)
from dialogs.providers.registry import make_provider
from dialogs.providers.scripted import Scripted, Step
from health.monitor.levels import Usage, UsageUnavailable
from tests.dialogs.providers.worlds import error_of, events_of, request

USER = ChatMessage(role="user", content="go")
CALL = ToolCall(id="c1", name="f", arguments="{}")
CALLS = ChatMessage(role="assistant", content="", tool_calls=(CALL,))
RESULT = ChatMessage(role="tool", content="42", tool_call_id="c1")


def text_of(events: list[Any]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


async def test_steps_are_played_in_order_and_the_last_one_again_and_again() -> None:
    provider = Scripted.from_steps(Step(text=("one",)), Step(text=("two",)))

    said = [text_of(await events_of(provider)) for _ in range(3)]

    assert said == ["one", "two", "two"]
    assert len(provider.requests) == 3


async def test_a_step_may_be_picked_by_the_last_user_message() -> None:
    provider = Scripted.from_steps(Step(text=("first",)), Step(match="weather", text=("rain",)), Step(text=("second",)))
    asked = request(ChatMessage(role="user", content="How is the weather?"))

    said = [text_of(await events_of(provider, asked=each)) for each in (request(), asked, request())]

    assert said == ["first", "rain", "second"]


async def test_usage_is_what_the_step_says_and_goes_through_the_normaliser() -> None:
    good = Step(text=("hi",), usage={"prompt_tokens": 100_001, "completion_tokens": 5})
    bad = Step(text=("hi",), usage={"prompt_tokens": "many"})
    provider = Scripted.from_steps(good, bad, Step(text=("hi",)))

    usages = [event.usage for _ in range(3) for event in await events_of(provider) if isinstance(event, UsageReported)]

    assert usages == [
        Usage(prompt_tokens=100_001, completion_tokens=5, total_tokens=100_006),
        UsageUnavailable("prompt_tokens is no token count: 'many'"),
        UsageUnavailable("the provider reported no usage"),
    ]


async def test_text_may_be_repeated_to_make_a_long_answer() -> None:
    provider = Scripted.from_steps(Step(reasoning=("hm",), text=("a ", "b "), repeat=50))

    events = await events_of(provider)

    assert events[0] == ReasoningDelta("hm")
    assert text_of(events) == "a b " * 50
    assert events[-1] == Finished("stop")


async def test_errors_are_of_the_family_with_their_details() -> None:
    limited = Step(error={"code": "rate_limited", "retry_after": 3})
    overflow = Step(text=("so",), error={"code": "context_overflow", "context_window": 900, "prompt_tokens": 1000})
    provider = Scripted.from_steps(limited, overflow, Step(error={"code": "unheard of"}), Step(error={}))

    errors = [await error_of(events_of(provider)) for _ in range(4)]

    assert isinstance(errors[0], RateLimited)
    assert errors[0].retry_after == 3
    assert isinstance(errors[1], ContextOverflow)
    assert (errors[1].context_window, errors[1].prompt_tokens) == (900, 1000)
    assert isinstance(errors[2], NotConfigured)
    assert errors[3].code == "provider_failed"


@pytest.mark.parametrize(
    ("messages", "law"),
    [
        ((), "nothing to answer"),
        ((ChatMessage(role="system", content="x"),), "nothing to answer"),
        ((USER, ChatMessage(role="assistant", content="done")), "nothing to answer"),
        ((ChatMessage(role="bot", content="x"), USER), "'bot' is unknown"),
        # A call without its result, at the end and in between.
        ((USER, CALLS, USER), r"\['c1'\] have no results"),
        ((USER, CALLS), r"\['c1'\] have no results"),
        # A result without its call, twice, and too late.
        ((USER, RESULT), "'c1' is the result of no open call"),
        ((USER, CALLS, RESULT, RESULT), "'c1' is the result of no open call"),
        ((USER, CALLS, RESULT, USER, RESULT), "'c1' is the result of no open call"),
        ((USER, ChatMessage(role="assistant", content="", tool_calls=(CALL, CALL)), RESULT), "two calls have one id"),
    ],
)
async def test_a_request_that_breaks_a_law_is_refused(messages: tuple[ChatMessage, ...], law: str) -> None:
    provider = Scripted.from_steps(Step(text=("never",)))

    with pytest.raises(RequestRefused, match=law):
        await events_of(provider, ChatRequest(model="m", messages=messages))

    assert len(provider.requests) == 1, "a refused request is kept too"


async def test_a_valid_round_of_calls_is_answered() -> None:
    provider = Scripted.from_steps(Step(text=("ok",)))

    events = await events_of(provider, request(ChatMessage(role="system", content="s"), USER, CALLS, RESULT))

    assert text_of(events) == "ok"


# --- Scripts in files ----------------------------------------------------------------------------------------------


@pytest.fixture
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(settings.DOMINDS_DATA_DIR) / f"{tmp_path_factory.mktemp('script').name}.json"


def played(script: Path) -> ProviderSettings:
    return ProviderSettings(name="scripted", kind="scripted", base_url=script.name)


def write(script: Path, *steps: dict[str, Any], **more: Any) -> None:
    script.write_text(json.dumps({"steps": list(steps), **more}))


async def test_processes_share_their_place_in_a_file_and_its_log_of_requests(script: Path) -> None:
    call = {"id": "c1", "name": "f", "arguments": "{}"}
    write(script, {"text": "one"}, {"match": "go", "text": ["tw", "o"], "tool_calls": [call]}, {"text": "three"})

    # Each with a provider of its own, as each worker has.
    said = [text_of(await events_of(make_provider(played(script)), asked)) for asked in (request(), request(USER))]
    said.append(text_of(await events_of(make_provider(played(script)), request())))

    log = [json.loads(line) for line in script.with_name(f"{script.name}.requests.jsonl").read_text().splitlines()]
    assert said == ["one", "two", "three"]
    assert [(line["step"], line["matched"]) for line in log] == [(0, False), (1, True), (2, False)]
    assert log[1]["messages"][0]["content"] == "go"


async def test_parts_names_and_options_are_in_the_log_too(script: Path) -> None:
    write(script, {"text": "A dot."})
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}}
    look = ChatMessage(role="user", content="", parts=(picture,), name="Alice")

    await events_of(make_provider(played(script)), request(look, options={"temperature": 0, "stop": ["END"]}))

    (line,) = script.with_name(f"{script.name}.requests.jsonl").read_text().splitlines()
    logged = json.loads(line)
    assert logged["options"] == {"temperature": 0, "stop": ["END"]}
    assert (logged["messages"][0]["parts"], logged["messages"][0]["name"]) == ([picture], "Alice")


async def test_a_file_may_list_models(script: Path) -> None:
    write(script, {"text": "x"}, models=[{"id": "tiny", "context_length": 1000}])

    limits = await make_provider(played(script)).read_limits("tiny")

    assert limits.context_length == 1000


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "{",
        "[]",
        "{}",
        '{"steps": [{"txt": "x"}]}',
        '{"steps": 3}',
        '{"steps": [{"tool_calls": [{"id": 1}]}]}',
    ],
)
def test_a_file_that_cannot_be_played_or_is_not_there_says_so(script: Path, text: str | None) -> None:
    if text is not None:
        script.write_text(text)

    with pytest.raises(NotConfigured, match="cannot be played"):
        make_provider(played(script))


def test_a_link_that_leads_out_of_the_data_folder_is_refused(script: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    write(outside, {"text": "x"})
    script.symlink_to(outside)

    with pytest.raises(NotConfigured, match="inside the data folder"):
        make_provider(played(script))


def test_scripts_are_played_only_where_that_is_switched_on(script: Path) -> None:
    write(script, {"text": "x"})

    with override_settings(DOMINDS_SCRIPTED=False), pytest.raises(NotConfigured, match="DOMINDS_SCRIPTED"):
        make_provider(played(script))


async def test_a_script_without_a_fitting_step_refuses(script: Path) -> None:
    write(script, {"match": "only this", "text": "x"})

    error: ProviderError = await error_of(events_of(make_provider(played(script))))

    assert isinstance(error, RequestRefused)


def test_requests_of_a_file_are_in_the_file(script: Path) -> None:
    write(script, {"text": "x"})
    provider = make_provider(played(script))

    with pytest.raises(TypeError, match="in the file beside it"):
        provider.requests  # type: ignore[attr-defined]  # noqa: B018
