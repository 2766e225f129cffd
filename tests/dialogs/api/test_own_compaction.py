"""A client that shortens its own history: by a summary in front, or by leaving the oldest messages out."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async

from dialogs.models import Dialog, Message, MessageMark
from health.models import CompactionRun
from tests.dialogs.api.conftest import Client, Play, assistant, long_history, said, user
from tests.dialogs.compacting_builders import RULE, long_text

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]

ANSWER = f"Here is what I found. {long_text(900, 2)}"
COLOURS = ("red", "blue", "green", "white", "brown", "black", "yellow")
PLACES = ("oven", "gate", "stairs", "boiler", "pump", "window")
SUMMARY = user("This is a summary of what we said: the pump was checked.")


def contents(request: dict[str, Any]) -> str:
    return "\n".join(message["content"] for message in request["messages"])


async def asked(client: Client, *history: dict[str, Any]) -> list[dict[str, Any]]:
    response = await client.ask(*history)
    assert response.status_code == 200, response.content
    return [*history, assistant(response.json()["choices"][0]["message"]["content"])]


@pytest.mark.parametrize("around", ["{}", " {}\n\n"])
async def test_a_summary_in_front_of_our_answers_is_another_branch_of_their_dialog(
    client_of_alice: Client, play: Play, around: str
) -> None:
    read = await sync_to_async(play)(said(120, around.format(ANSWER)), said(120, "Well."))
    history = await asked(client_of_alice, user("What about the pump?"))
    history[-1]["content"] = history[-1]["content"].strip()

    await asked(client_of_alice, SUMMARY, *history, user("And now?"))

    assert await Dialog.objects.acount() == 1
    assert read()[1]["messages"][0]["content"] == SUMMARY["content"]
    assert await Message.objects.filter(parent=None).acount() == 2


async def test_a_summary_with_nothing_of_ours_begins_a_dialog(client_of_alice: Client, play: Play) -> None:
    await sync_to_async(play)(said(120, ANSWER), said(120, "Well."))
    await asked(client_of_alice, user("What about the pump?"))

    await asked(client_of_alice, SUMMARY, user("And now?"))

    assert await Dialog.objects.acount() == 2


SYSTEM = {"role": "system", "content": "You help with the boiler."}


@pytest.mark.parametrize("system", [[], [SYSTEM]], ids=["none", "its own"])
@pytest.mark.parametrize("role", ["user", "system"])
async def test_what_was_laid_down_and_pinned_is_kept_beside_a_clients_summary(
    guarded_client: Client, play: Play, role: str, system: list[dict[str, Any]]
) -> None:
    summary = {**SUMMARY, "role": role}
    read = await sync_to_async(play)(said(900, ANSWER), said(900, "Well."), said(900, "Good."))
    history = await asked(guarded_client, *system, *long_history(30), user("And now?"))
    pinned = await Message.objects.aget(content__startswith="Question 3.")
    await MessageMark.objects.acreate(message=pinned, pinned=True)

    shorter = await asked(guarded_client, *system, summary, *history[-2:], user("Go on."))
    await asked(guarded_client, *shorter, user("And then?"))

    assert await Dialog.objects.acount() == 1
    for sent in map(contents, read()[1:]):
        assert RULE in sent
        assert pinned.content in sent
        assert SUMMARY["content"] in sent
    assert await CompactionRun.objects.exclude(trigger="carried").acount() == 1


@pytest.mark.parametrize("thoughts", ["", "<think>What was said?</think>\n\n"])
async def test_a_summary_that_we_were_asked_for_is_a_branch_although_nothing_else_of_ours_is_left(
    guarded_client: Client, play: Play, thoughts: str
) -> None:
    summary = f"The pump was checked twice, the valve once; the boiler is still to be done. {long_text(901, 2)}"
    read = await sync_to_async(play)(said(900, ANSWER), said(900, thoughts + summary), said(900, "Good."))
    history = await asked(guarded_client, *long_history(30), user("And now?"))
    pinned = await Message.objects.aget(content__startswith="Question 3.")
    await MessageMark.objects.acreate(message=pinned, pinned=True)
    await asked(guarded_client, *history, user("Write a summary for whoever goes on with this."))

    await asked(guarded_client, user(f"This is what was done before.\n\n{summary}\n\nGo on with the boiler."))

    sent = contents(read()[2])
    assert await Dialog.objects.acount() == 1
    assert RULE in sent
    assert pinned.content in sent
    assert len(sent) < len(contents(read()[1]))


async def test_an_answer_that_somebody_quotes_in_a_new_chat_begins_a_dialog(
    client_of_alice: Client, play: Play
) -> None:
    await sync_to_async(play)(said(120, ANSWER), said(120, "Well."))
    await asked(client_of_alice, user("What about the pump?"))

    await asked(client_of_alice, user(f"You said before: {ANSWER}"), assistant("Did I?"), user("Yes."))

    assert await Dialog.objects.acount() == 2


async def test_a_client_that_leaves_its_oldest_messages_out_keeps_its_view(guarded_client: Client, play: Play) -> None:
    await sync_to_async(play)(said(900, ANSWER), said(900, "Well."))
    history = await asked(guarded_client, *long_history(30), user("And now?"))

    await asked(guarded_client, *history[4:], user("Go on."))

    assert await Dialog.objects.acount() == 1
    assert await CompactionRun.objects.exclude(trigger="carried").acount() == 1


async def test_what_a_person_told_goes_along_where_the_client_sends_little_of_its_history_in_another_order(
    guarded_client: Client, play: Play
) -> None:
    read = await sync_to_async(play)(said(900, ANSWER), said(900, f"Well. {ANSWER}"), said(900, "Good."))
    rules = [f"Never store the {colour} crates beside the {place}." for colour in COLOURS for place in PLACES]
    told = "The spare key hangs behind the kitchen door."
    begun = [
        user("The budget is 900 euros."),
        assistant("Noted."),
        user(told),
        assistant("Noted."),
        *(each for rule in rules for each in (user(rule), assistant("Noted."))),
    ]
    history = await asked(guarded_client, *begun, *long_history(20), user("And now?"))
    assert await CompactionRun.objects.aexists()

    shorter = await asked(guarded_client, user("So."), history[-1], user("The budget is 1200 euros now."))
    await asked(guarded_client, user("Thanks."), shorter[-1], user("Go on."))

    assert "900 euros" not in contents(read()[1])
    assert [one for one in (told, *rules) if one not in contents(read()[1])] == []
    assert [one for one in ("1200 euros", told, *rules) if one not in contents(read()[2])] == []


async def test_a_client_that_goes_back_behind_a_compaction_is_answered(guarded_client: Client, play: Play) -> None:
    read = await sync_to_async(play)(said(900, ANSWER))
    history: list[dict[str, Any]] = []
    for number in range(4):
        history = await asked(guarded_client, *history, user(f"Question {number}. {long_text(number, 70)}"))
    assert await CompactionRun.objects.aexists()

    await asked(guarded_client, *history[:3])

    assert await Dialog.objects.acount() == 1
    assert [one["content"] for one in read()[-1]["messages"][1:]] == [one["content"] for one in history[:3]]


async def test_a_named_dialog_goes_on_with_whatever_history(client_of_alice: Client, play: Play) -> None:
    await sync_to_async(play)(said(120, "Hi."))
    first = await client_of_alice.ask(user("Hello"))
    named = first.json()["dominds"]["dialog"]

    await client_of_alice.ask(user("Something else"), headers={"X-Dominds-Dialog": named})

    assert await Dialog.objects.acount() == 1
