"""Calls and results that do not pair in what a client sends: every service refuses these, so they are put right."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async

from dialogs.models import Dialog, Message
from dialogs.providers.anthropic import wire_request
from dialogs.providers.base import ChatMessage, ChatRequest, ProviderError
from health.compaction.reading.pairing import NO_RESULT, STRAY_RESULT
from health.models import CompactionRun
from tests.client_dialogs import picture
from tests.dialogs.api.conftest import Client, Play, assistant, long_history, said, user

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


def asking(*ids: str) -> dict[str, Any]:
    function = {"name": "weather", "arguments": "{}"}
    return assistant("", tool_calls=[{"id": one, "type": "function", "function": function} for one in ids])


def result(call_id: str, text: str = "rain") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


HISTORIES = {
    "a call without a result": [user("Weather?"), asking("a"), user("Well?")],
    "one of two calls without a result": [user("Weather?"), asking("a", "b"), result("b"), user("Well?")],
    "a result without a call": [user("Weather?"), result("a"), assistant("Rain."), user("Well?")],
    "a result that comes twice": [user("Weather?"), asking("a"), result("a"), result("a", "snow"), user("Well?")],
    "a result that comes late": [user("Weather?"), asking("a"), user("Well?"), result("a")],
    "two calls of one id": [user("Weather?"), asking("a", "a"), result("a"), result("a", "snow")],
    "a history that ends with a call": [user("Weather?"), asking("a")],
}


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES.keys())
async def test_the_model_is_asked_with_every_word_of_it(
    client_of_alice: Client, play: Play, history: list[dict[str, Any]]
) -> None:
    """The scripted provider refuses what does not pair, as services do."""
    read = await sync_to_async(play)(said(120, "It rains."))

    response = await client_of_alice.ask(*history)

    assert response.status_code == 200
    sent = "\n".join(one["content"] for one in read()[-1]["messages"])
    assert all(one["content"] in sent for one in history)
    stored = Message.objects.exclude(content="It rains.").order_by("seq").values_list("role", "content")
    assert [pair async for pair in stored] == [(one["role"], one["content"]) for one in history], "kept as it came"


async def test_what_was_put_right_says_so(client_of_alice: Client, play: Play) -> None:
    read = await sync_to_async(play)(said(120))

    await client_of_alice.ask(user("Weather?"), asking("a", "b"), result("b"), result("c", "snow"), user("Well?"))

    sent = [(one["role"], one["tool_call_id"], one["content"]) for one in read()[-1]["messages"]]
    assert sent[2:] == [
        ("tool", "b", "rain"),
        ("tool", "a", NO_RESULT),
        ("user", None, f"{STRAY_RESULT}\nsnow"),
        ("user", None, "Well?"),
    ]


async def test_what_a_client_asks_beside_its_conversation_is_put_right_too(client_of_alice: Client, play: Play) -> None:
    await sync_to_async(play)(said(120, "A title"))

    response = await client_of_alice.ask(
        *HISTORIES["a call without a result"], headers={"X-Dominds-Task": "title_generation"}
    )

    assert response.status_code == 200


@pytest.mark.parametrize("name", HISTORIES)
async def test_a_long_one_is_compacted_all_the_same(guarded_client: Client, play: Play, name: str) -> None:
    await sync_to_async(play)(said(120))

    response = await guarded_client.ask(*long_history(12, 6), *HISTORIES[name])

    assert response.status_code == 200
    assert [run.status async for run in CompactionRun.objects.all()] == ["applied"]


# Messages that say nothing: the turns stay as the client meant them, and a request of nothing else is refused.


REFUSED = "I cannot help with that."


@pytest.mark.parametrize(
    "messages", [[user("")], [user([])], [{"role": "user"}], [{"role": "system", "content": ""}, user("")]]
)
async def test_a_request_that_says_nothing_is_refused(
    client_of_alice: Client, play: Play, messages: list[dict[str, Any]]
) -> None:
    read = await sync_to_async(play)(said(120, "Hi."))

    response = await client_of_alice.ask(*messages)

    assert response.status_code == 400
    assert response.json()["error"]["message"] == "every message is empty: there is nothing to answer"
    assert read() == []
    assert await Dialog.objects.acount() == 0


async def test_an_empty_message_at_the_end_is_sent_as_one(client_of_alice: Client, play: Play) -> None:
    read = await sync_to_async(play)(said(120, "Well."))

    await client_of_alice.ask(user("a"), assistant("x"), user(""))

    assert [(one["role"], one["content"]) for one in read()[0]["messages"]] == [
        ("user", "a"),
        ("assistant", "x"),
        ("user", ""),
    ]


@pytest.mark.parametrize(
    ("answer", "sent"),
    [
        ({"content": None, "refusal": REFUSED}, REFUSED),
        ({"content": [{"type": "refusal", "refusal": REFUSED}]}, REFUSED),
        ({"content": [{"type": "text", "text": "No."}, {"type": "refusal", "refusal": REFUSED}]}, f"No.\n\n{REFUSED}"),
        ({"content": "Yes.", "refusal": REFUSED}, "Yes."),
        ({"content": ""}, ""),
    ],
    ids=["field", "part", "beside-text", "content-first", "empty"],
)
async def test_an_answer_that_refuses_or_is_empty_keeps_its_turn(
    client_of_alice: Client, play: Play, answer: dict[str, Any], sent: str
) -> None:
    read = await sync_to_async(play)(said(120, "Well."))

    await client_of_alice.ask(user("a"), {"role": "assistant", **answer}, user("b"))

    assert [(one["role"], one["content"]) for one in read()[0]["messages"]] == [
        ("user", "a"),
        ("assistant", sent),
        ("user", "b"),
    ]


async def test_an_empty_answer_of_ours_keeps_its_turn_when_it_comes_back(client_of_alice: Client, play: Play) -> None:
    read = await sync_to_async(play)(said(120, ""), said(120, "Well."))
    answer = (await client_of_alice.ask(user("a"))).json()["choices"][0]["message"]["content"]

    await client_of_alice.ask(user("a"), assistant(answer), user("b"))

    assert [one["role"] for one in read()[1]["messages"]] == ["user", "assistant", "user"]


async def test_a_picture_without_words_is_sent(client_of_alice: Client, play: Play) -> None:
    read = await sync_to_async(play)(said(120, "A dot."))

    await client_of_alice.ask(user([picture()]))

    assert read()[0]["messages"][0]["parts"] == [picture()]


def asked_of_anthropic(*turns: tuple[str, str]) -> Any:
    messages = tuple(ChatMessage(role=role, content=content) for role, content in turns)
    return wire_request(ChatRequest(model="m", messages=messages))["messages"]


async def test_where_no_empty_message_is_taken_turns_are_joined_and_an_empty_end_is_refused() -> None:
    (joined,) = asked_of_anthropic(("user", "a"), ("assistant", ""), ("user", "b"))
    assert [block["text"] for block in joined["content"]] == ["a", "b"]

    with pytest.raises(ProviderError, match="takes no empty message"):
        asked_of_anthropic(("user", "a"), ("assistant", "x"), ("user", ""))
