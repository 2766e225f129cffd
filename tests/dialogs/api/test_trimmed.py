"""A client that trims its own history goes on with one conversation: it sends its newest messages, perhaps behind its
first ones and a note of its own, or old results in fewer words."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import Client as Browser

from dialogs.context.border import chat_request
from dialogs.context.estimate import next_context
from dialogs.models import Dialog, Generation, Message, PrefixNode
from dialogs.turns.reads.turns import dialog_to_drive
from health.models import CompactionRun
from tests.dialogs.api.conftest import Client, MakeKey, Play, a_tool, assistant, calling, said, user
from tests.dialogs.compacting_builders import RULE, long_text

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]

SYSTEM = {"role": "system", "content": "You help with the boiler."}
NOTE = "[NOTE] Some previous conversation history with the user has been removed."
CLEARED = "[Old tool result content cleared]"
Head = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
# What clients put in front of the newest messages.
HEADS: dict[str, Head] = {
    "the first message": lambda history: history[:1],
    "the first exchange": lambda history: history[:2],
    "the first message, and a note in place of its answer": lambda history: [history[0], assistant(NOTE)],
    "the first exchange, and a count": lambda history: [*history[:2], user(f"Skipped {len(history) - 11} messages.")],
    "the first message with a note": lambda history: [user(f"{history[0]['content']}\n\n{NOTE}")],
    "a note": lambda _history: [user(NOTE)],
    "a note as a system message": lambda _history: [{"role": "system", "content": NOTE}],
    "the first message, and a system message": lambda history: [history[0], {"role": "system", "content": NOTE}],
    "a developer message and the first": lambda history: [{"role": "developer", "content": NOTE}, history[0]],
}


def answers(number: int) -> list[dict[str, Any]]:
    return [said(900, f"Answer {at}. {long_text(900 + at, 1)}") for at in range(number)]


class Trimming:
    """Sends its instructions and so many of the newest messages; once these are not all, what `first` makes of the
    history before them."""

    def __init__(self, client: Client, *, newest: int, first: Head = lambda history: []) -> None:
        self.client, self.newest, self.first = client, newest, first
        self.history: list[dict[str, Any]] = []

    @property
    def sent(self) -> list[dict[str, Any]]:
        is_all = len(self.history) <= self.newest + (4 if self.first(self.history) else 0)
        return [SYSTEM, *(self.history if is_all else [*self.first(self.history), *self.history[-self.newest :]])]

    async def ask(self, words: str, **more: Any) -> str:
        self.history.append(user(words))
        response = await self.client.ask(*self.sent, **more)
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


@pytest.mark.parametrize("around", [" {}", "\n\n{} ", "{}\r\n\t", "<think>Well.</think>\n\n{}", "Say </think>. {}"])
async def test_blanks_and_thoughts_around_an_answer_that_the_client_takes_away_do_not_matter(
    client_of_alice: Client, play: Play, around: str
) -> None:
    await sync_to_async(play)(*(said(900, around.format(one["text"])) for one in answers(8)))
    client = Trimming(client_of_alice, newest=5)

    for turn in range(8):
        await client.ask(f"Question {turn}. {long_text(turn, 1)}")
        client.history[-1]["content"] = re.sub(r"^<think>.*</think>", "", client.history[-1]["content"]).strip()

    assert await Dialog.objects.acount() == 1
    assert await Message.objects.acount() == 16


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


@pytest.mark.parametrize("note", ["", "[NOTE] The gate is painted green."], ids=["no-head", "a-note"])
async def test_once_it_was_compacted_what_was_laid_down_before_goes_along_with_a_note_and_the_newest_messages(
    guarded_client: Client, play: Play, note: str
) -> None:
    read = await sync_to_async(play)(*(said(900, f"Answer {at}. {long_text(900 + at, 30)}") for at in range(14)))
    head: Head = lambda history: [history[0], assistant(note)] if note else []  # noqa: E731
    client = Trimming(guarded_client, newest=7, first=head)
    await client.ask(RULE)

    for turn in range(13):
        await client.ask(f"Question {turn}. {long_text(turn, 30)}")

    assert await Dialog.objects.acount() == 1
    assert await Message.objects.acount() == 28
    compacted = await CompactionRun.objects.filter(status="applied").order_by("pk").afirst()
    assert compacted is not None
    since = await Message.objects.filter(pk__lte=compacted.leaf_id, role="user").acount()
    for at, request in enumerate(read()[6 if note else since - 1 :]):
        sent = "\n".join(texts(request))
        assert RULE in sent, at
        assert not note or sent.count(note) == 1, at
    assert note or not await CompactionRun.objects.filter(trigger="carried").aexists()


@pytest.mark.parametrize("head", HEADS)
async def test_twenty_turns_of_a_client_that_keeps_a_head_are_one_dialog_and_sent_as_they_came(
    client_of_alice: Client, play: Play, head: str
) -> None:
    read = await sync_to_async(play)(*answers(20))
    client, sent = Trimming(client_of_alice, newest=9, first=HEADS[head]), list[list[str]]()

    for turn in range(20):
        await client.ask(f"Question {turn}. {long_text(turn, 1)}")
        client.history, answer = client.history[:-1], client.history[-1]
        sent.append([one["content"] for one in client.sent])
        client.history.append(answer)

    assert await Dialog.objects.acount() == 1
    assert [one.content async for one in Message.objects.order_by("seq")] == [one["content"] for one in client.history]
    assert ["\n\n".join(texts(request)) for request in read()] == list(map("\n\n".join, sent))


async def test_what_a_head_leaves_out_is_on_the_page_of_what_the_model_no_longer_sees(
    client_of_alice: Client, as_alice: Browser, play: Play
) -> None:
    await sync_to_async(play)(*answers(8))
    client = Trimming(client_of_alice, newest=5, first=HEADS["the first message, and a note in place of its answer"])
    await client.talk(8)
    dialog, last = await Dialog.objects.aget(), await Generation.objects.alatest("pk")

    archive = await sync_to_async(as_alice.get)(f"/dialogs/{dialog.pk}/archive-of-context/")
    seen = await sync_to_async(as_alice.get)(f"/dialogs/{dialog.pk}/generations/{last.pk}/seen/")

    said = [one["content"] for one in client.history]
    assert [one in archive.content.decode() for one in said] == [False, *[True] * 9, *[False] * 6]
    assert [one in seen.content.decode() for one in said] == [True, *[False] * 9, *[True] * 5, False]
    assert NOTE in seen.content.decode()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda said: [*said[:2], *said[3:]], "one message alone is taken out by hand"),
        (lambda said: [said[0], assistant("Edited."), *said[2:]], "an answer was edited"),
        (lambda said: [said[0], user(long_text(77, 30)), *said[-3:]], "no note is that long"),
        (lambda said: [*said[1::-1], *said[-3:]], "the first messages stand in another order"),
    ],
)
async def test_what_is_no_head_begins_a_branch(client_of_alice: Client, play: Play, change: Head, why: str) -> None:
    read = await sync_to_async(play)(*answers(5), said(900, "Well."), said(900, "Good."))
    client = Trimming(client_of_alice, newest=100)
    await client.talk(4)
    newest = await Message.objects.order_by("-pk").afirst()
    changed = [*change(client.history), user("And then?")]

    await client_of_alice.ask(SYSTEM, *changed)

    assert not await Message.objects.filter(parent=newest).aexists(), why
    assert texts(read()[-1]) == [SYSTEM["content"], *(one["content"] for one in changed)]


async def test_what_a_client_took_out_that_it_had_put_in_is_no_head(client_of_alice: Client, play: Play) -> None:
    read = await sync_to_async(play)(*answers(3))
    begun = [user("The task."), assistant("I see."), user("The files."), assistant("I see them."), user("Do it.")]
    answer = await client_of_alice.ask(SYSTEM, *begun)
    made = assistant(answer.json()["choices"][0]["message"]["content"])

    await client_of_alice.ask(SYSTEM, *begun[:2], begun[4], made, user("And now?"))

    assert await Message.objects.filter(content="Do it.").acount() == 2
    assert "The files." not in texts(read()[-1])


async def test_two_conversations_with_one_head_and_one_end_are_not_told_apart(
    client_of_alice: Client, play: Play
) -> None:
    same = said(900, long_text(900, 3))
    await sync_to_async(play)(said(900, "One."), said(900, "Two."), same, said(900, "One."), said(900, "Three."), same)
    for number in (1, 2):
        client = Trimming(client_of_alice, newest=100)
        for words in (f"Begin {number}." if number == 2 else "Begin.", f"It is {number}.", "What is to be done?"):
            await client.ask(words)
    before = await Message.objects.acount()

    await client_of_alice.ask(SYSTEM, user(NOTE), *client.history[-2:], user("And then?"))

    assert await Message.objects.acount() == before + 5


async def test_results_that_a_client_clears_stay_as_they_were_and_are_sent_as_it_sends_them(
    client_of_alice: Client, as_alice: Browser, play: Play
) -> None:
    calls = [calling(900, "weather", '{"city":"Ulm"}', call_id=f"call_of_the_weather_{at}") for at in range(6)]
    read, tools = await sync_to_async(play)(*calls, *answers(1)), [a_tool("weather")]
    history: list[dict[str, Any]] = [user("Watch the weather.")]

    for at in range(7):
        results = [place for place, one in enumerate(history) if one["role"] == "tool"]
        sent = [{**one, "content": CLEARED} if place in results[:-2] else one for place, one in enumerate(history)]
        response = await client_of_alice.ask(SYSTEM, *sent, tools=tools)
        message = response.json()["choices"][0]["message"]
        history.append({key: message[key] for key in ("role", "content", "tool_calls") if message.get(key)})
        if at < 6:
            call = message["tool_calls"][0]["id"]
            history.append({"role": "tool", "tool_call_id": call, "content": f"Rain {at}. {long_text(at, 3)}"})

    assert await Message.objects.acount() == len(history) == 14
    assert [one.get("content") for one in read()[-1]["messages"][1:] if one["role"] == "tool"] == [
        *[CLEARED] * 4,
        *[one["content"] for one in history if one["role"] == "tool"][-2:],
    ]
    assert not await Message.objects.filter(content=CLEARED).aexists()
    dialog, last = await Dialog.objects.aget(), await Generation.objects.alatest("pk")
    seen = await sync_to_async(as_alice.get)(f"/dialogs/{dialog.pk}/generations/{last.pk}/seen/")
    assert (seen.content.decode().count(CLEARED), "Rain 0." in seen.content.decode()) == (4, False)


@pytest.mark.parametrize("turns", [1, 3])
async def test_of_an_answer_that_was_stopped_the_client_may_have_less_than_came(
    client_of_alice: Client, play: Play, turns: int
) -> None:
    read = await sync_to_async(play)(*(said(900, f"100%_\\ {one['text']}") for one in answers(turns + 2)))
    client = Trimming(client_of_alice, newest=100)
    await client.talk(turns)
    stopped = await Message.objects.alatest("seq")
    await Message.objects.filter(pk=stopped.pk).aupdate(cut_short=True)
    client.history[-1]["content"] = stopped.content[:-20]

    await client.talk(2)

    assert await Dialog.objects.acount() == 1
    assert await Message.objects.acount() == 2 * turns + 4
    assert texts(read()[-1]) == [one["content"] for one in client.sent][:-1]


async def test_of_a_long_answer_too(client_of_alice: Client, play: Play) -> None:
    """SQLite compares no more than 50,000 characters by LIKE."""
    await sync_to_async(play)(said(900, "At length. " * 6000), *answers(2))
    client = Trimming(client_of_alice, newest=100)
    await client.talk(1)
    await Message.objects.filter(role="assistant").aupdate(cut_short=True)
    client.history[-1]["content"] = client.history[-1]["content"][:-20]

    await client.talk(2)

    assert (await Dialog.objects.acount(), await Message.objects.acount()) == (1, 6)


async def test_an_image_that_a_client_drops_is_kept_and_sent_no_more(client_of_alice: Client, play: Play) -> None:
    await sync_to_async(play)(*answers(3))
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    asked = {"role": "user", "content": [{"type": "text", "text": "What is it?"}, image]}
    first = await client_of_alice.ask(SYSTEM, asked)
    history = [user("What is it?"), assistant(first.json()["choices"][0]["message"]["content"]), user("And now?")]

    second = await client_of_alice.ask(SYSTEM, *history)
    again = [*history, assistant(second.json()["choices"][0]["message"]["content"]), user("Well?")]
    await client_of_alice.ask(SYSTEM, *again)

    assert await Message.objects.acount() == 6
    assert await Message.objects.filter(parts__wire__has_key="content").acount() == 1
    dialog = await sync_to_async(dialog_to_drive)((await Dialog.objects.aget()).pk)
    sent = await sync_to_async(lambda: chat_request(next_context(dialog)).messages)()
    assert not any(one.parts for one in sent)
