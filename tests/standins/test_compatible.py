"""The stand-in server: each of its ways must be a real server's, or what runs against it proves nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from dialogs.providers.base import (
    ChatMessage,
    ContextOverflow,
    ProviderSettings,
    RequestRefused,
    TextDelta,
    ToolCall,
    ToolCallReady,
    UsageReported,
)
from dialogs.providers.llamacpp import LlamaCpp
from dialogs.providers.openai_compatible import OpenAICompatible
from health.monitor.levels import Usage
from tests.dialogs.providers.worlds import error_of, events_of
from tests.dialogs.providers.worlds import request as asked_with
from tests.standins.compatible import Cached, CompatibleStandin, Lists, Overlong, Reply, answer_to, count
from tests.standins.serving import serving

SYSTEM, FIRST = ChatMessage(role="system", content="You help."), ChatMessage(role="user", content="My name is Alice.")
# Each is closed after one question.
Provider = Callable[[], OpenAICompatible]
PNG = "data:image/png;base64,aGk="


def chat(turns: int) -> list[ChatMessage]:
    """Each turn is some seventy tokens."""
    said = [
        ChatMessage(role=role, content=f"{role} {at} " + "word " * 20)
        for at in range(turns)
        for role in ("user", "assistant")
    ]
    return [
        SYSTEM,
        FIRST,
        ChatMessage(role="assistant", content="Hello Alice."),
        *said,
        ChatMessage(role="user", content="What is my name?"),
    ]


@contextmanager
def server(**fields: Any) -> Iterator[tuple[CompatibleStandin, Provider]]:
    standin = CompatibleStandin(model="small", **fields)
    with serving(standin.app()) as url:
        kind = LlamaCpp if standin.lists == Lists.PROPS else OpenAICompatible
        settings = ProviderSettings(name="house", kind=kind.kind, base_url=f"{url}/v1", read_timeout=10)
        yield standin, lambda: kind(settings)


async def usage_of(provider: Provider, *messages: ChatMessage) -> Usage:
    (found,) = [
        one.usage for one in await events_of(provider(), asked_with(*messages)) if isinstance(one, UsageReported)
    ]
    assert isinstance(found, Usage)
    return found


async def test_the_answer_depends_on_the_last_message_alone() -> None:
    with server() as (_standin, provider):
        events = await events_of(provider(), asked_with(*chat(2)))

    assert "".join(one.text for one in events if isinstance(one, TextDelta)) == answer_to("What is my name?")


@pytest.mark.parametrize(("lists", "said"), [(Lists.NOWHERE, None), (Lists.MODELS, 500), (Lists.PROPS, 500)])
async def test_its_window_is_read_where_it_is_listed(lists: Lists, said: int | None) -> None:
    with server(window=500, lists=lists) as (_standin, provider):
        assert (await provider().read_limits("small")).context_length == said


@pytest.mark.parametrize(("names", "said"), [(True, 300), (False, None)])
async def test_what_is_too_long_is_refused_with_its_window_or_without(names: bool, said: int | None) -> None:
    with server(window=300, names=names) as (standin, provider):
        error = await error_of(events_of(provider(), asked_with(*chat(10))))

    assert isinstance(error, ContextOverflow)
    assert error.context_window == said
    assert len(standin.refusals) == 1


@pytest.mark.parametrize(("most", "is_refused"), [(100, False), (400, True)])
async def test_the_answer_can_count_with_the_prompt(most: int, is_refused: bool) -> None:
    with server(window=600, counts_answer=True) as (standin, provider):
        request = asked_with(*chat(4), max_output_tokens=most)
        if is_refused:
            error = await error_of(events_of(provider(), request))
            assert isinstance(error, ContextOverflow)
            assert (error.context_window, error.prompt_tokens) == (600, standin.seen[0].size)
        else:
            assert await events_of(provider(), request)


@pytest.mark.parametrize("overlong", [Overlong.WITHOUT_OLDEST, Overlong.WITHOUT_MIDDLE, Overlong.FILLED])
async def test_what_is_cut_is_not_reported(overlong: Overlong) -> None:
    with server(window=300, overlong=overlong) as (standin, provider):
        usage = await usage_of(provider, *chat(10))

    (cut,) = standin.cuts
    assert usage.prompt_tokens == cut.read < 300 < cut.size


@pytest.mark.parametrize(
    ("way", "share", "cached"),
    [(Cached.COUNTED, 1.0, True), (Cached.LEFT_OUT, 0.3, False), (Cached.BESIDE, 0.3, False)],
)
async def test_a_prompt_that_begins_as_the_last_one_did_is_cached(way: Cached, share: float, cached: bool) -> None:
    with server(cached=way) as (standin, provider):
        await usage_of(provider, *chat(8))
        usage = await usage_of(provider, *chat(8), ChatMessage(role="assistant", content="Alice."), FIRST)

    assert usage.prompt_tokens <= share * standin.seen[-1].size
    # A part that is more than the whole is not believed.
    assert bool(usage.cached_tokens) is cached


def call(call_id: str) -> ChatMessage:
    return ChatMessage(role="assistant", content="", tool_calls=(ToolCall(id=call_id, name="look", arguments="{}"),))


def result(call_id: str) -> ChatMessage:
    return ChatMessage(role="tool", content="Rain.", tool_call_id=call_id)


@pytest.mark.parametrize(
    "messages",
    [
        [SYSTEM],
        [SYSTEM, ChatMessage(role="assistant", content="Hello."), FIRST],
        [FIRST, SYSTEM, FIRST],
        [FIRST, ChatMessage(role="assistant", content="Hello.")],
        [FIRST, call("a")],
        [FIRST, call("a"), FIRST],
        [FIRST, result("a")],
        [FIRST, call("a"), result("b")],
        [FIRST, call("a"), result("a"), result("a")],
    ],
)
async def test_what_is_no_valid_chat_is_refused(messages: list[ChatMessage]) -> None:
    with server() as (standin, provider):
        error = await error_of(events_of(provider(), asked_with(*messages)))

    assert isinstance(error, RequestRefused)
    assert len(standin.invalid) == 1


async def test_a_round_of_calls_is_answered() -> None:
    def look(body: Any) -> Reply:
        return Reply(text="Rain.") if body["messages"][-1]["role"] == "tool" else Reply(calls=[("look", {"at": "sky"})])

    with server(reply=look) as (standin, provider):
        events = await events_of(provider(), asked_with(FIRST))
        (asked,) = [one.call for one in events if isinstance(one, ToolCallReady)]
        answered = await events_of(
            provider(),
            asked_with(FIRST, ChatMessage(role="assistant", tool_calls=(asked,), content=""), result(asked.id)),
        )

    assert (asked.name, asked.arguments) == ("look", '{"at": "sky"}')
    assert answered[0] == TextDelta("Rain.")
    assert standin.invalid == []


def test_an_image_counts_as_much_as_many_words() -> None:
    text = {"role": "user", "content": "Look."}
    image = {
        "role": "user",
        "content": [{"type": "text", "text": "Look."}, {"type": "image_url", "image_url": {"url": PNG}}],
    }

    assert count([image], ()) - count([text], ()) == pytest.approx(650, abs=2)


async def test_it_tells_what_it_saw() -> None:
    with server(window=300) as (standin, provider):
        await events_of(provider(), asked_with(FIRST))
        await error_of(events_of(provider(), asked_with(*chat(10))))
        async with httpx.AsyncClient() as client:
            told = (await client.get(f"{provider().settings.base_url.removesuffix('/v1')}/standin?asked=1")).json()

    assert (told["requests"], told["fates"]) == (2, {"answered": 1, "refused": 1})
    assert told["asked"] == [standin.asked[-1]]
