"""What every provider promises the driver, whatever it speaks. Run against each kind, over a real wire, and against a
server behind each of the strict chat templates that are published.

A new provider passes this suite by adding its world to `worlds.py`.
"""

from __future__ import annotations

import asyncio
import json

import pytest

from dialogs.models import Provider
from dialogs.models.provider import ProviderKind, provider_kinds
from dialogs.providers.base import (
    ArgumentsDelta,
    AuthenticationRefused,
    ChatMessage,
    ContextOverflow,
    Finished,
    ModelNotFound,
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
from dialogs.providers.registry import KINDS
from health.monitor.levels import Usage, UsageUnavailable
from tests.dialogs.providers.upstream import Upstream
from tests.dialogs.providers.worlds import (
    MODEL,
    STRICT_WORLDS,
    WORLDS,
    Answer,
    Refusal,
    World,
    error_of,
    events_of,
    request,
)


@pytest.fixture(params=[*WORLDS, *STRICT_WORLDS])
def world(request: pytest.FixtureRequest, server: Upstream) -> World:
    return {**WORLDS, **STRICT_WORLDS}[request.param](server)


def test_every_kind_has_a_world() -> None:
    assert set(WORLDS) == set(KINDS)


def test_every_kind_can_be_chosen() -> None:
    assert set(ProviderKind) == set(KINDS)


def test_a_new_kind_needs_no_migration() -> None:
    """The migrations hold the name of the function, never the kinds."""
    *_, told = Provider._meta.get_field("kind").deconstruct()

    assert told["choices"] is provider_kinds


async def test_text_comes_in_pieces_and_usage_directly_before_the_end(world: World) -> None:
    world.answers(Answer(text=("Hel", "lo ", "你好"), usage=(10, 3)))

    events = await events_of(world.provider())

    assert events == [
        TextDelta("Hel"),
        TextDelta("lo "),
        TextDelta("你好"),
        events[-2],
        Finished("stop"),
    ]
    assert isinstance(events[-2], UsageReported)
    assert events[-2].usage == Usage(prompt_tokens=10, completion_tokens=3, total_tokens=13)
    assert events[-2].raw


async def test_without_usage_there_is_none_and_never_zero(world: World) -> None:
    world.answers(Answer(text=("Hi",)))

    events = await events_of(world.provider())

    assert isinstance(events[-2], UsageReported)
    assert isinstance(events[-2].usage, UsageUnavailable)
    assert events[-2].usage.why
    assert events[-2].raw is None


async def test_reasoning_is_apart_from_the_answer(world: World) -> None:
    world.answers(Answer(reasoning=("hm", "m"), text=("Yes",), usage=(10, 3)))

    events = await events_of(world.provider())

    assert events[:3] == [ReasoningDelta("hm"), ReasoningDelta("m"), TextDelta("Yes")]


async def test_tool_calls_come_whole(world: World) -> None:
    calls = (
        ToolCall(id="call_1", name="add_reminder", arguments='{"content": "milk"}'),
        ToolCall(id="call_2", name="clear_mind", arguments="{}"),
    )
    world.answers(Answer(text=("One moment.",), calls=calls, usage=(10, 3), finish="tool_calls"))

    events = await events_of(world.provider())

    assert [event.call for event in events if isinstance(event, ToolCallReady)] == list(calls)
    assert events[-1] == Finished("tool_calls")


async def test_the_arguments_of_a_call_are_told_as_they_come(world: World) -> None:
    call = ToolCall(id="call_1", name="write_file", arguments=json.dumps({"content": "word " * 200}))
    world.answers(Answer(calls=(call,), usage=(10, 3), finish="tool_calls"))

    events = await events_of(world.provider())

    told = [event for event in events if isinstance(event, ArgumentsDelta)]
    assert json.loads("".join(event.text for event in told)) == json.loads(call.arguments)
    assert events.index(told[-1]) < next(at for at, event in enumerate(events) if isinstance(event, ToolCallReady))


async def test_an_answer_cut_by_its_length_says_so(world: World) -> None:
    world.answers(Answer(text=("and th",), usage=(10, 3), finish="length"))

    events = await events_of(world.provider())

    assert events[-1] == Finished("length")


async def test_a_round_of_calls_and_results_is_accepted(world: World) -> None:
    world.answers(Answer(text=("Done.",), usage=(10, 3)))
    call = ToolCall(id="call_1", name="f", arguments="{}")

    events = await events_of(
        world.provider(),
        request(
            ChatMessage(role="system", content="You help."),
            ChatMessage(role="user", content="Do it"),
            ChatMessage(role="assistant", content="", tool_calls=(call,)),
            ChatMessage(role="tool", content="42", tool_call_id="call_1"),
        ),
    )

    assert events[0] == TextDelta("Done.")


async def test_what_is_typed_while_tools_run_and_after_no_answer_is_accepted(world: World) -> None:
    """Strict templates refuse a user's message after a result, and two in a row."""
    world.answers(Answer(text=("Done.",), usage=(10, 3)))
    call = ToolCall(id="call_1", name="f", arguments="{}")

    events = await events_of(
        world.provider(),
        request(
            ChatMessage(role="system", content="You help."),
            ChatMessage(role="user", content="Do it"),
            ChatMessage(role="user", content="At once"),
            ChatMessage(role="assistant", content="", tool_calls=(call,)),
            ChatMessage(role="tool", content="42", tool_call_id="call_1"),
            ChatMessage(role="user", content="WAIT"),
        ),
    )

    assert events[0] == TextDelta("Done.")


@pytest.mark.parametrize("after", ["cut", "close"])
async def test_a_broken_connection_keeps_what_came_and_is_worth_a_retry(world: World, after: str) -> None:
    world.answers(Answer(text=("Hel", "lo"), after=after))
    provider, came = world.provider(), []

    async def answering() -> None:
        async for event in provider.stream(request()):
            came.append(event)

    error = await error_of(answering())
    await provider.aclose()

    assert came == [TextDelta("Hel"), TextDelta("lo")]
    assert isinstance(error, ProviderUnreachable)
    assert error.retryable


async def test_a_silent_provider_is_left_after_the_read_timeout(world: World) -> None:
    world.answers(Answer(text=("Hel",), after="hang"))
    world.read_timeout = 0.3  # type: ignore[attr-defined]

    error = await error_of(events_of(world.provider()))

    assert isinstance(error, ProviderUnreachable)
    assert "silent for 0.3 s" in str(error)


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (AuthenticationRefused, 401),
        (AuthenticationRefused, 403),
        (ModelNotFound, 404),
        (RequestRefused, 400),
        (RequestRefused, 422),
        (RateLimited, 429),
        (ProviderFailed, 500),
        (ProviderFailed, 503),
        (ProviderFailed, 529),
    ],
)
async def test_a_refusal_is_told_by_its_kind(world: World, kind: type[ProviderError], status: int) -> None:
    world.refuses(Refusal(code=kind.code, status=status, message="because"))

    error = await error_of(events_of(world.provider()))

    assert type(error) is kind
    assert error.status == status
    assert error.retry_after is None
    assert "because" in str(error)
    assert error.retryable == (status in {429, 500, 503, 529})


@pytest.mark.parametrize("status", [429, 503])
async def test_a_wished_pause_is_passed_on(world: World, status: int) -> None:
    code = RateLimited.code if status == 429 else ProviderFailed.code
    world.refuses(Refusal(code=code, status=status, retry_after=7))

    error = await error_of(events_of(world.provider()))

    assert error.retry_after == 7


async def test_a_prompt_that_is_too_long_tells_the_window(world: World) -> None:
    world.refuses(Refusal(code=ContextOverflow.code, status=400, window=2048, prompt=3000))

    error = await error_of(events_of(world.provider()))

    assert isinstance(error, ContextOverflow)
    assert (error.context_window, error.prompt_tokens, error.status) == (2048, 3000, 400)
    assert not error.retryable


async def test_a_closed_stream_can_be_followed_by_another(world: World) -> None:
    world.answers(Answer(text=("word ",) * 200, usage=(10, 200), delay=0.01))
    provider = world.provider()

    async with asyncio.timeout(5):
        stream = provider.stream(request())
        first = await anext(stream)
        await stream.aclose()
        again = await anext(provider.stream(request()))
    await provider.aclose()

    assert first == again == TextDelta("word ")


async def test_models_are_listed_with_their_windows(world: World) -> None:
    world.lists({MODEL: 4096})

    provider = world.provider()
    listed = await provider.list_models()
    limits = await provider.read_limits(MODEL)
    await provider.aclose()

    assert [facts.model_id for facts in listed] == [MODEL]
    assert limits.context_length == 4096


async def test_an_unknown_model_has_no_limits(world: World) -> None:
    world.lists({MODEL: 4096})

    error = await error_of(world.provider().read_limits("other"))

    assert isinstance(error, ModelNotFound)
