"""A client that sends its newest messages only, as many as its own limit lets it, goes on with the same conversation."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async

from dialogs.models import Dialog, Message, PrefixNode
from tests.dialogs.api.conftest import Client, Play, assistant, said, user
from tests.dialogs.compacting_builders import long_text

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]

SYSTEM = {"role": "system", "content": "You help with the boiler."}


def answers(number: int) -> list[dict[str, Any]]:
    return [said(900, f"Answer {at}. {long_text(900 + at, 1)}") for at in range(number)]


class Trimming:
    """Sends its instructions and so many of the newest messages."""

    def __init__(self, client: Client, *, newest: int, system: dict[str, Any] = SYSTEM) -> None:
        self.client, self.newest, self.system = client, newest, system
        self.history: list[dict[str, Any]] = []

    async def ask(self, words: str, **more: Any) -> str:
        self.history.append(user(words))
        response = await self.client.ask(self.system, *self.history[-self.newest :], **more)
        assert response.status_code == 200, response.content
        self.history.append(assistant(response.json()["choices"][0]["message"]["content"]))
        return str(response.json()["dominds"]["dialog"])

    async def talk(self, turns: int) -> None:
        begun = len(self.history) // 2
        for turn in range(begun, begun + turns):
            await self.ask(f"Question {turn}. {long_text(turn, 1)}")


def texts(request: dict[str, Any]) -> list[str]:
    return [one["content"] for one in request["messages"]]


async def test_forty_turns_of_a_client_that_sends_thirteen_messages_are_one_dialog_of_eighty_messages(
    client_of_alice: Client, play: Play
) -> None:
    read = await sync_to_async(play)(*answers(40))
    client = Trimming(client_of_alice, newest=13)

    await client.talk(40)

    assert await Dialog.objects.acount() == 1
    assert [one.content async for one in Message.objects.order_by("seq")] == [one["content"] for one in client.history]
    assert await PrefixNode.objects.acount() == 80
    sent = [texts(request) for request in read()]
    for turn, request in enumerate(sent):
        so_far = [one["content"] for one in client.history[: 2 * turn + 1]]
        assert request == [SYSTEM["content"], *so_far[-13:]]
