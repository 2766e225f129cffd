"""What a client puts before every conversation is its frame: no person's task, no rule, and no sign of a conversation.

The client here writes its requests as coding tools do: example turns, then what was said, then the files as they are
now, then the newest words.
"""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async

from dialogs.api.reads import clients
from dialogs.models import Dialog, Message
from health.models import CompactionRun
from tests.dialogs.api.conftest import Client, Play, assistant, said, text_of, user
from tests.dialogs.compacting_builders import long_text

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]

CANNED_RULE = "Please don't consider the above files or try to edit them any longer."
TASK = "The goal: build the tool Heron. Never use the eval builtin."
EXAMPLES = [
    user("Change get_factorial() to use math.factorial"),
    assistant("Here are the blocks."),
    user(f"I switched to a new code base. {CANNED_RULE}"),
    assistant("Ok."),
]


class Coder:
    """Example turns first, the files moved to the end and written anew for each request, then the newest words."""

    def __init__(self, client: Client, *, repository: str = "heron", seed: int = 0) -> None:
        self.client, self.repository, self.seed = client, repository, seed
        self.done: list[dict[str, Any]] = []
        self.turn = 0

    async def ask(self, words: str, *, sentences: int = 1) -> str:
        self.turn += 1
        system = {"role": "system", "content": f"You write code. It is {self.turn % 24:02}:{self.turn % 60:02}."}
        code = "\n".join(f"def f{number}(): return {number}" for number in range(self.turn))
        files = [user(f"These are the files of {self.repository}:\n{code}"), assistant("Ok, only those files.")]
        asked = user(f"{words} {long_text(self.seed + self.turn, sentences)}")
        newest = user(f"{asked['content']}\n\nAnswer with blocks.")
        answer = text_of(await self.client.stream(system, *EXAMPLES, *self.done, *files, newest))
        self.done += [asked, assistant(answer), user(f"I committed that as {self.turn:07x}."), assistant("Ok.")]
        return answer


def answers(number: int, seed: int = 700) -> list[dict[str, Any]]:
    return [said(900, f"Answer {turn}. {long_text(seed + turn, 1)}") for turn in range(number)]


def contents(request: dict[str, Any]) -> str:
    return "\n".join(message["content"] for message in request["messages"])


async def test_a_files_message_that_moves_and_changes_leaves_one_dialog(client_of_alice: Client, play: Play) -> None:
    await sync_to_async(play)(*answers(4))
    coder = Coder(client_of_alice)

    for turn in range(4):
        await coder.ask(TASK if turn == 0 else f"Add f{turn}.")

    assert (await Dialog.objects.aget()).title.startswith("The goal: build the tool Heron.")


async def test_a_long_conversation_of_such_a_client_is_no_frame(
    client_of_alice: Client, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "MOST_ANSWERS", 4)
    await sync_to_async(play)(*answers(6))
    coder = Coder(client_of_alice)

    for turn in range(6):
        await coder.ask(TASK if turn == 0 else f"Add f{turn}.")

    framed = {one.content async for one in Message.objects.filter(parts__framed=True)}
    assert framed == {one["content"] for one in EXAMPLES}


async def test_two_sessions_that_begin_with_the_same_examples_are_two_dialogs(
    client_of_alice: Client, play: Play
) -> None:
    await sync_to_async(play)(*answers(6))
    one, two = Coder(client_of_alice), Coder(client_of_alice, repository="stork", seed=100)

    for turn in range(3):
        await one.ask(f"One {turn}.")
        await two.ask(f"Two {turn}.")

    told = {
        str(dialog.pk): "\n".join([one.content async for one in Message.objects.filter(dialog=dialog)])
        async for dialog in Dialog.objects.all()
    }
    assert len(told) == 2
    assert sorted(("One 2." in text, "Two 2." in text) for text in told.values()) == [(False, True), (True, False)]


async def test_another_question_after_the_same_examples_is_another_conversation(
    client_of_alice: Client, play: Play
) -> None:
    await sync_to_async(play)(*answers(3))

    for question in ("One?", "Two?", "Three?"):
        await client_of_alice.ask(*EXAMPLES, user(question))

    titles = [dialog.title async for dialog in Dialog.objects.order_by("created_at")]
    assert len(titles) == 3
    assert titles[-1] == "Three?", "by now it is known that what stands before it is no question of this conversation"


async def test_a_history_that_was_brought_along_again_and_again_stays_a_persons(
    guarded_client: Client, play: Play
) -> None:
    """Whoever brings one history into several conversations has laid down in each what stands in it."""
    read = await sync_to_async(play)(*answers(24))
    laid_down = ("The harbour closes on 14 March.", "Never use the eval builtin.")
    history = [user(laid_down[0]), assistant("Is that so?"), user(TASK), assistant("Ok.")]

    for number in range(4):
        said_so_far = [*history, user(f"Try {number}. {long_text(number, 4)}")]
        for turn in range(6):
            answer = text_of(await guarded_client.stream(*said_so_far))
            said_so_far += [assistant(answer), user(f"And {turn}? {long_text(100 * number + turn, 24)}")]

    assert await CompactionRun.objects.filter(status="applied").aexists()
    assert not await Message.objects.filter(parts__framed=True).aexists()
    assert [told for told in laid_down for request in read() if told not in contents(request)] == []


async def test_a_history_that_was_brought_along_once_is_a_persons(client_of_alice: Client, play: Play) -> None:
    await sync_to_async(play)(*answers(3))
    history = [*EXAMPLES, user("And now?")]

    answer = (await client_of_alice.ask(*history)).json()["choices"][0]["message"]["content"]
    await client_of_alice.ask(*history, assistant(answer), user("Go on."))

    assert await Dialog.objects.acount() == 1
    assert not await Message.objects.filter(parts__framed=True).aexists()


async def test_a_history_of_which_the_client_drops_the_middle_stays_a_persons(
    client_of_alice: Client, play: Play
) -> None:
    await sync_to_async(play)(*answers(3))
    asked = user("What do I need for the boat, and by when?")
    first = (await client_of_alice.ask(*EXAMPLES, asked)).json()["choices"][0]["message"]["content"]

    await client_of_alice.ask(*EXAMPLES[:2], asked, assistant(first), user("And then?"))

    assert await Dialog.objects.acount() == 1
    assert not await Message.objects.filter(parts__framed=True).aexists()


async def test_other_instructions_before_the_same_words_are_another_conversation(
    client_of_alice: Client, play: Play
) -> None:
    await sync_to_async(play)(*answers(3))
    history = [*EXAMPLES, user("What is this about?")]

    for system in ("You work in heron, 10:01.", "You work in heron, 10:02.", "You work in stork, 10:03."):
        await client_of_alice.ask({"role": "system", "content": system}, *history)

    assert await Dialog.objects.acount() == 2


async def test_the_task_of_a_framed_conversation_stays_and_files_that_are_rewritten_each_turn_cost_few_compactions(
    guarded_client: Client, play: Play
) -> None:
    read = await sync_to_async(play)(*answers(20))
    coder, runs = Coder(guarded_client), [0]

    for turn in range(20):
        await coder.ask(TASK if turn == 0 else f"Add f{turn}.", sentences=30)
        runs.append(await CompactionRun.objects.filter(status="applied").exclude(trigger="carried").acount())

    sent = [contents(request) for request in read()]
    assert all(TASK in request for request in sent)
    assert not any(f"] {CANNED_RULE}" in request for request in sent), "the frame lays down no rule"
    assert await Dialog.objects.acount() == 1
    first = next(turn for turn, number in enumerate(runs) if number)
    assert 20 - first >= 9
    assert 3 * (runs[-1] - 1) <= 20 - first
