"""Messages that say nothing: the turns stay as the client meant them, and a request of nothing else is refused."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async

from dialogs.models import Dialog
from dialogs.providers.anthropic import wire_request
from dialogs.providers.base import ChatMessage, ChatRequest, ProviderError
from tests.client_dialogs import picture
from tests.dialogs.api.conftest import Client, Play, assistant, said, user

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]

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
