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


async def test_reasoning_is_apart_from_the_answer_and_one_cut_by_its_length_says_so(world: World) -> None:
    world.answers(Answer(reasoning=("hm", "m"), text=("Yes",), usage=(10, 3), finish="length"))

    events = await events_of(world.provider())

    assert events[:3] == [ReasoningDelta("hm"), ReasoningDelta("m"), TextDelta("Yes")]
    assert events[-1] == Finished("length")


async def test_tool_calls_come_whole_and_their_arguments_are_told_as_they_come(world: World) -> None:
    calls = (
        ToolCall(id="call_1", name="write_file", arguments=json.dumps({"content": "word " * 200})),
        ToolCall(id="call_2", name="clear_mind", arguments="{}"),
    )
    world.answers(Answer(text=("One moment.",), calls=calls, usage=(10, 3), finish="tool_calls"))

    events = await events_of(world.provider())

    assert [event.call for event in events if isinstance(event, ToolCallReady)] == list(calls)
    assert events[-1] == Finished("tool_calls")
    before = events[: events.index(ToolCallReady(calls[0]))]
    told = "".join(event.text for event in before if isinstance(event, ArgumentsDelta))
    assert json.JSONDecoder().raw_decode(told)[0] == json.loads(calls[0].arguments)


ASKED = [ChatMessage(role="system", content="You help."), ChatMessage(role="user", content="Do it")]
ROUND = [
    ChatMessage(role="assistant", content="", tool_calls=(ToolCall(id="call_1", name="f", arguments="{}"),)),
    ChatMessage(role="tool", content="42", tool_call_id="call_1"),
]


@pytest.mark.parametrize(
    "messages",
    [
        [*ASKED, *ROUND],
        # Strict templates refuse a user's message after a result, and two in a row.
        [*ASKED, ChatMessage(role="user", content="At once"), *ROUND, ChatMessage(role="user", content="WAIT")],
    ],
    ids=["a-round", "typed-while-tools-run-and-after-no-answer"],
)
async def test_a_round_of_calls_and_results_is_accepted_whatever_is_typed_meanwhile(
    world: World, messages: list[ChatMessage]
) -> None:
    world.answers(Answer(text=("Done.",), usage=(10, 3)))

    assert (await events_of(world.provider(), request(*messages)))[0] == TextDelta("Done.")


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
    ("kind", "status", "pause"),
    [
        (AuthenticationRefused, 401, None),
        (AuthenticationRefused, 403, None),
        (ModelNotFound, 404, None),
        (RequestRefused, 400, None),
        (RequestRefused, 422, None),
        (RateLimited, 429, None),
        (RateLimited, 429, 7),
        (ProviderFailed, 500, None),
        (ProviderFailed, 503, 7),
        (ProviderFailed, 529, None),
    ],
)
async def test_a_refusal_is_told_by_its_kind_with_the_wished_pause(
    world: World, kind: type[ProviderError], status: int, pause: int | None
) -> None:
    world.refuses(Refusal(code=kind.code, status=status, message="because", retry_after=pause))

    error = await error_of(events_of(world.provider()))

    assert type(error) is kind
    assert (error.status, error.retry_after) == (status, pause)
    assert "because" in str(error)
    assert error.retryable == (status in {429, 500, 503, 529})


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
