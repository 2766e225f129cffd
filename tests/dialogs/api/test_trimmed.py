"""A client that sends its newest messages only, as many as its own limit lets it, goes on with one conversation."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from dialogs.models import Dialog, Message, PrefixNode
from health.models import CompactionRun
from tests.dialogs.api.conftest import Client, MakeKey, Play, a_tool, assistant, calling, said, user
from tests.dialogs.compacting_builders import RULE, long_text

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


async def test_an_answer_that_is_asked_for_again_and_a_question_that_is_changed_stand_beside_the_old_ones(
    client_of_alice: Client, play: Play
) -> None:
    read = await sync_to_async(play)(*answers(8))
    client = Trimming(client_of_alice, newest=5)
    await client.talk(4)
    window = client.history[-6:-1]

    await client_of_alice.ask(SYSTEM, *window)
    await client_of_alice.ask(SYSTEM, *window[:-1], user("Another question."))

    assert await Dialog.objects.acount() == 1
    assert await Message.objects.acount() == 8 + 1 + 2
    assert texts(read()[-2]) == [SYSTEM["content"], *(one["content"] for one in window)]
    assert texts(read()[-1])[1:] == [*(one["content"] for one in window[:-1]), "Another question."]


async def test_a_client_that_sends_all_again_is_sent_on_with_all_again(client_of_alice: Client, play: Play) -> None:
    read = await sync_to_async(play)(*answers(8))
    client = Trimming(client_of_alice, newest=5)
    await client.talk(5)

    client.newest = 100
    await client.talk(2)

    assert await Message.objects.acount() == 14
    assert [len(texts(request)) for request in read()[-3:]] == [6, 12, 14]


async def test_rounds_of_tools_go_on_where_the_client_begins_between_them(client_of_alice: Client, play: Play) -> None:
    script = [*answers(1), calling(900, "weather", '{"city":"Ulm"}'), *answers(4)[1:]]
    read = await sync_to_async(play)(*script)
    client = Trimming(client_of_alice, newest=5)
    await client.talk(1)
    client.history.append(user("And the weather?"))
    asked = await client_of_alice.ask(SYSTEM, *client.history, tools=[a_tool("weather")])
    made = asked.json()["choices"][0]["message"]["tool_calls"]
    result = {"role": "tool", "tool_call_id": made[0]["id"], "content": "rain"}
    client.history += [assistant("", tool_calls=made), result]
    answer = await client_of_alice.ask(SYSTEM, *client.history, tools=[a_tool("weather")])
    client.history.append(assistant(answer.json()["choices"][0]["message"]["content"]))

    await client.ask("Well?")

    assert await Dialog.objects.acount() == 1
    assert await Message.objects.acount() == 8
    assert [one["role"] for one in read()[-1]["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]


@pytest.mark.parametrize(
    ("history", "why"),
    [
        ([user("hi"), assistant("Hello."), user("And now?")], "few words are said in many conversations"),
        ([assistant(long_text(900, 1)), user("And now?")], "one message alone is no history"),
        ([user("Question 1."), assistant("Answer 1. Said otherwise, and at some length."), user("So?")], "other words"),
    ],
)
async def test_too_little_in_common_is_not_taken_for_the_end_of_a_conversation(
    client_of_alice: Client, play: Play, history: list[dict[str, Any]], why: str
) -> None:
    await sync_to_async(play)(*(said(900, text) for text in ("Good.", "Hello.", long_text(900, 1))), *answers(3))
    so_far: list[dict[str, Any]] = []
    for words in ("Begin.", "hi", "Question 1."):
        so_far += [user(words)]
        response = await client_of_alice.ask(SYSTEM, *so_far)
        so_far += [assistant(response.json()["choices"][0]["message"]["content"])]
    newest = await Message.objects.order_by("-pk").afirst()

    await client_of_alice.ask(SYSTEM, *history)

    assert not await Message.objects.filter(parent=newest).aexists(), why


async def test_what_ends_two_conversations_goes_on_with_neither(client_of_alice: Client, play: Play) -> None:
    same = said(900, long_text(900, 3))
    await sync_to_async(play)(said(900, "One."), same, said(900, "Two."), same, *answers(1))
    for words in ("This is the first.", "This is the second."):
        client = Trimming(client_of_alice, newest=5)
        await client.ask(words)
        await client.ask("What is to be done?")

    await client_of_alice.ask(SYSTEM, *client.history[-2:], user("And then?"))

    begun = await Message.objects.order_by("-pk").values_list("parent__parent__parent__parent", flat=True).afirst()
    assert begun is None, "the request was stored as it came"
    assert await Message.objects.acount() == 4 + 4 + 4


@pytest.mark.parametrize("other", ["person", "chat", "instructions"])
async def test_nobody_goes_on_with_what_was_said_to_others(
    client_of_alice: Client, play: Play, make_key: MakeKey, bob: User, other: str
) -> None:
    await sync_to_async(play)(*answers(5))
    client = Trimming(client_of_alice, newest=5)
    await client.talk(4)
    window = [*client.history[-4:], user("And then?")]
    before = await Message.objects.acount()

    if other == "person":
        _key, secret = await sync_to_async(make_key)(owner=bob)
        await Client(secret).ask(SYSTEM, *window)
    elif other == "chat":
        await client_of_alice.ask(SYSTEM, *window, headers={"X-Dominds-Chat": "another"})
    else:
        await client_of_alice.ask({"role": "system", "content": "You write poems."}, *window)

    assert await Message.objects.acount() == before + len(window) + 1
    assert await Dialog.objects.acount() == 2


async def test_once_it_was_compacted_what_was_laid_down_before_goes_along_with_the_newest_messages(
    guarded_client: Client, play: Play
) -> None:
    read = await sync_to_async(play)(*(said(900, f"Answer {at}. {long_text(900 + at, 30)}") for at in range(14)))
    client = Trimming(guarded_client, newest=7)
    await client.ask(RULE)

    for turn in range(13):
        await client.ask(f"Question {turn}. {long_text(turn, 30)}")

    assert await Dialog.objects.acount() == 1
    assert await Message.objects.acount() == 28
    compacted = await CompactionRun.objects.filter(status="applied").order_by("pk").afirst()
    assert compacted is not None
    since = await Message.objects.filter(pk__lte=compacted.leaf_id, role="user").acount()
    assert [RULE in "\n".join(texts(request)) for request in read()[since - 1 :]] == [True] * (15 - since)
    assert not await CompactionRun.objects.filter(trigger="carried").aexists()
