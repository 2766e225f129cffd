"""A client resends all it has: what is known of it goes on where it was, what was changed becomes a branch."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from dialogs.api.writes.api_keys import create_key
from dialogs.models import Dialog, Message, PrefixNode
from tests.dialogs.api.conftest import Client, MakeKey, Play, assistant, said, user

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


def part(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


async def test_a_resent_history_goes_on_in_the_same_dialog_under_other_instructions_too(
    client_of_alice: Client, play: Play
) -> None:
    read = await sync_to_async(play)(said(120, "Hi."), said(130, "Fine."))
    monday, tuesday = ({"role": "system", "content": f"It is {day}."} for day in ("Monday", "Tuesday"))
    await client_of_alice.ask(monday, user("Hello"))

    await client_of_alice.ask(tuesday, user("Hello"), assistant("Hi."), user("How are you?"))

    assert await Dialog.objects.acount() == 1
    assert await Message.objects.acount() == 4
    sent = [(one["role"], one["content"]) for one in read()[1]["messages"]]
    said_so_far = [("user", "Hello"), ("assistant", "Hi."), ("user", "How are you?")]
    assert sent == [("system", "It is Tuesday."), *said_so_far]


@pytest.mark.parametrize(
    "again",
    [
        assistant("Hi.\n"),
        {"role": "assistant", "content": part("Hi.")},
        assistant("Hi.", reasoning_content="A greeting."),
        assistant("<think>A greeting.</think>\n\nHi."),
        assistant('<details type="reasoning" done="true">\n<summary>Thought</summary>\n> x\n</details>\nHi.'),
        assistant("Hi.", tool_calls=None, refusal=None, annotations=[]),
    ],
    ids=["spaces", "parts", "thoughts-beside", "thoughts-in-tags", "thoughts-in-details", "empty-fields"],
)
async def test_an_answer_is_known_however_the_client_writes_it(
    client_of_alice: Client, play: Play, again: dict[str, Any]
) -> None:
    await sync_to_async(play)(said(120, "Hi.", reasoning=["A greeting."]), said(130, "Fine."))
    await client_of_alice.ask(user("Hello"))

    await client_of_alice.ask(user("Hello"), again, user("How are you?"))

    assert await Message.objects.acount() == 4


async def test_an_edited_message_is_a_branch_of_the_same_dialog_and_an_earlier_one_can_be_gone_on_with(
    client_of_alice: Client, play: Play
) -> None:
    read = await sync_to_async(play)(said(120, "Hi."), said(130, "Fine."), said(130, "Old."), said(1, "Good."))
    start = [user("Hello"), assistant("Hi.")]
    await client_of_alice.ask(user("Hello"))
    await client_of_alice.ask(*start, user("How are you?"))

    await client_of_alice.ask(*start, user("How old are you?"))

    siblings = [one.content async for one in Message.objects.filter(role="user", parent__content="Hi.")]
    assert siblings == ["How are you?", "How old are you?"]
    assert [one["content"] for one in read()[2]["messages"]] == ["Hello", "Hi.", "How old are you?"]

    await client_of_alice.ask(*start, user("How are you?"), assistant("Fine."), user("Nice"))

    assert [one["content"] for one in read()[3]["messages"]] == ["Hello", "Hi.", "How are you?", "Fine.", "Nice"]
    assert await Dialog.objects.acount() == 1


async def test_two_conversations_that_begin_alike_another_model_and_another_person_are_conversations_of_their_own(
    client_of_alice: Client, make_key: MakeKey, bob: User, play: Play
) -> None:
    _key, secret = await sync_to_async(make_key)(owner=bob)
    await sync_to_async(play)(said(120, "Hi."))
    history = [user("Hello"), assistant("Hi."), user("Well?")]
    await client_of_alice.ask(user("Hello"))
    await client_of_alice.ask(user("Hello"))
    assert await Dialog.objects.acount() == 2

    await client_of_alice.post({"model": "helper", "messages": history})
    await Client(secret).ask(*history)

    owners = [dialog.owner.username async for dialog in Dialog.objects.select_related("owner").order_by("created_at")]
    assert owners == ["alice", "alice", "alice", "bob"]


async def test_the_clients_own_name_of_a_chat_keeps_chats_apart_and_together(
    client_of_alice: Client, play: Play
) -> None:
    await sync_to_async(play)(said(120, "Hi."))
    one, two = {"X-Dominds-Chat": "one"}, {"X-OpenWebUI-Chat-Id": "two"}
    history = [user("Hello"), assistant("Hi."), user("Well?")]

    await client_of_alice.ask(user("Hello"), headers=one)
    await client_of_alice.ask(user("Hello"), headers=one)
    await client_of_alice.ask(*history, headers=two)

    chats = {dialog.client.chat async for dialog in Dialog.objects.select_related("client")}
    assert chats == {"one", "two"}
    assert await Dialog.objects.acount() == 2


async def test_a_dialog_can_be_named(client_of_alice: Client, play: Play) -> None:
    await sync_to_async(play)(said(120, "Hi."))
    named = (await client_of_alice.ask(user("Hello"))).json()["dominds"]["dialog"]

    again = await client_of_alice.ask(user("Hello"), headers={"X-Dominds-Dialog": named})
    unknown = await client_of_alice.ask(
        user("Hello"), headers={"X-Dominds-Dialog": "6f1b9c1e-7d4a-4f52-9f43-000000000000"}
    )

    assert again.json()["dominds"]["dialog"] == named
    assert (unknown.status_code, unknown.json()["error"]["param"]) == (400, "X-Dominds-Dialog")


async def test_a_key_that_may_only_chat_names_no_dialog_but_its_own(
    client_of_alice: Client, alice: User, play: Play
) -> None:
    await sync_to_async(play)(said(120, "Hi."))
    other = (await client_of_alice.ask(user("Hello"), user("there"))).json()["dominds"]["dialog"]
    _key, secret = await sync_to_async(create_key)(owner=alice, name="Plugin", scope="chat_only")
    plugin = Client(secret)
    own = (await plugin.ask(user("Bonjour"))).json()["dominds"]["dialog"]

    answers = [await plugin.ask(user("Encore"), headers={"X-Dominds-Dialog": named}) for named in (other, own)]

    assert [answer.status_code for answer in answers] == [400, 200]


async def test_requests_at_the_same_time_do_not_wait_for_each_other_and_a_copy_goes_on_by_itself(
    client_of_alice: Client, play: Play
) -> None:
    await sync_to_async(play)(said(120, ["a", "b", "c"], delay=0.2))
    history = [user("Hello"), assistant("Hi."), user("Well?")]

    answers = await asyncio.gather(*(client_of_alice.ask(*history) for _number in range(4)))

    assert {answer.json()["choices"][0]["message"]["content"] for answer in answers} == {"abc"}
    assert await Dialog.objects.acount() == 4

    await client_of_alice.ask(*history, assistant("abc"), user("More"))

    lengths = sorted([await Message.objects.filter(dialog=one).acount() async for one in Dialog.objects.all()])
    assert lengths == [4, 4, 4, 6]


async def test_a_thousand_messages_are_stored_with_few_queries(
    client_of_alice: Client, play: Play, django_assert_max_num_queries: Any
) -> None:
    await sync_to_async(play)(said(120, "Hi."))
    history = [one for number in range(500) for one in (user(f"Q{number}"), assistant(f"A{number}"))]

    response = await client_of_alice.ask(*history, user("Well?"))

    assert response.status_code == 200
    assert await PrefixNode.objects.acount() == 1002
    leaf = await Message.objects.aget(content="Well?")
    assert (leaf.seq, leaf.turn) == (1001, 501)


@pytest.mark.parametrize("is_busy", [False, True], ids=["the-same-dialog", "a-copy-of-a-busy-one"])
async def test_a_history_that_ends_with_a_call_whose_result_it_left_out_goes_to_the_model(
    client_of_alice: Client, play: Play, is_busy: bool
) -> None:
    read = await sync_to_async(play)(said(120, "It rains."))
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    asked = [user("Weather?"), assistant("", tool_calls=[call])]
    await client_of_alice.ask(*asked, {"role": "tool", "tool_call_id": "c1", "content": "rain"})
    if is_busy:
        await Dialog.objects.aupdate(wake_seq=99)

    async with asyncio.timeout(10):
        response = await client_of_alice.ask(*asked)

    # The scripted provider refuses a call without a result, as most servers do: it was given one that says so.
    assert response.status_code == 200
    assert [one["role"] for one in read()[-1]["messages"]] == ["user", "assistant", "tool"]
    assert await Message.objects.filter(role="tool").acount() == 1
