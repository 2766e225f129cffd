"""A conversation's next request goes on from what was put together for its last one: the request is the same."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db.backends.utils import CursorWrapper
from django.db.models import F
from django.db.models.signals import post_init

from dialogs.api import reading, speculation
from dialogs.api.speculation import BESIDE, AnsweredCache, SpeculativeRequest, speculate
from dialogs.models import Dialog, Message
from tests.dialogs.api.conftest import Client, Play, a_tool, assistant, calling, said, user

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
WORDS = ("Hello", "  two\n\nlines \n", "你好", "<think>x</think>y")


@pytest.fixture
def went_on(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each request, whether it went on from another; it is held against the one that is read whole."""
    seen: list[bool] = []

    def both(**asked: Any) -> SpeculativeRequest | None:
        seen.append(any(speculation.RECENT.below(one) for one in asked["known"].messages))
        found = speculate(**asked)
        with monkeypatch.context() as alone:
            alone.setattr(speculation, "RECENT", AnsweredCache())
            whole = speculate(**asked)
        if found is None or whole is None:
            assert found is whole
        else:
            assert found.request == whole.request
            assert found.prepared.sizing.at_most == whole.prepared.sizing.at_most
            assert [one.pk for one in found.branch] == [one.pk for one in whole.branch]
        return found

    monkeypatch.setattr(reading, "speculate", both)
    return seen


@pytest.mark.parametrize("seed", range(12))
async def test_it_is_the_request_that_is_read_whole(
    client_of_alice: Client, play: Play, went_on: list[bool], seed: int
) -> None:
    dice = random.Random(seed)
    answers = [
        calling(100 + at, "weather", '{"city": "Ulm"}', call_id=f"c{at}") if dice.random() < 0.4 else said(100 + at)
        for at in range(6)
    ]
    await sync_to_async(play)(*answers)
    history: list[dict[str, Any]] = [{"role": "system", "content": "Be brief."}] if dice.random() < 0.5 else []

    for at in range(6):
        if not (history and history[-1]["role"] == "tool"):
            history.append(user(f"{dice.choice(WORDS)} {at}"))
        answer = (await client_of_alice.ask(*history, tools=[a_tool("weather")])).json()["choices"][0]["message"]
        history.append(answer)
        for call in answer.get("tool_calls") or ():
            history.append({"role": "tool", "tool_call_id": call["id"], "content": "rain"})

    assert went_on == [False, *[True] * 5]


async def a_conversation(client: Client, play: Play) -> list[dict[str, Any]]:
    await sync_to_async(play)(said(100, "First."), said(120, "Second."), said(140, "Third."))
    await client.ask(user("One?"))
    await client.ask(user("One?"), assistant("First."), user("Two?"))
    return [user("One?"), assistant("First."), user("Two?"), assistant("Second."), user("Three?")]


async def test_what_another_process_changed_is_read(client_of_alice: Client, play: Play, went_on: list[bool]) -> None:
    history = await a_conversation(client_of_alice, play)
    await Dialog.objects.aupdate(version=F("version") + 1)

    await client_of_alice.ask(*history)

    assert went_on == [False, True, False]


async def test_a_conversation_that_goes_another_way_is_read(
    client_of_alice: Client, play: Play, went_on: list[bool]
) -> None:
    history = await a_conversation(client_of_alice, play)

    await client_of_alice.ask(*history[:2], user("Something else?"))

    assert went_on == [False, True, False]


async def test_no_more_is_kept_than_is_allowed(
    client_of_alice: Client, play: Play, went_on: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    little = AnsweredCache(most_bytes=BESIDE)
    monkeypatch.setattr("dialogs.api.turn.RECENT", little)
    monkeypatch.setattr(speculation, "RECENT", little)
    history = await a_conversation(client_of_alice, play)

    await client_of_alice.ask(*history)

    assert went_on == [False, False, False]


# How often what is stored is read for one request of a client: counted, as a clock says more of the machine.


@pytest.fixture
def read() -> Iterator[Counter[int]]:
    """How often each stored message is read, by its id."""
    seen: Counter[int] = Counter()

    def note(instance: Message, **_: object) -> None:
        seen[instance.pk] += 1

    post_init.connect(note, sender=Message)
    yield seen
    post_init.disconnect(note, sender=Message)


@pytest.mark.parametrize("elsewhere", [0, 1], ids=["answered-here", "answered-elsewhere"])
async def test_an_old_message_is_read_once_at_the_most_to_foresee_the_request_and_to_make_it(
    client_of_alice: Client, play: Play, read: Counter[int], elsewhere: int
) -> None:
    await sync_to_async(play)(*[said(100 * number + 100, f"Answer {number}.") for number in range(4)])
    history = []
    for number in range(3):
        history.append(user(f"Question {number}?"))
        await client_of_alice.ask(*history)
        history.append(assistant(f"Answer {number}."))
    dialog = await Dialog.objects.alatest("created_at")
    first = await Message.objects.filter(dialog=dialog).order_by("seq").values_list("pk", flat=True).afirst()
    await Dialog.objects.aupdate(version=F("version") + elsewhere)
    read.clear()

    await client_of_alice.ask(*history, user("And now?"))

    assert first is not None
    assert read[first] == elsewhere


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is asked of the database, by all threads."""
    said: list[str] = []
    execute = CursorWrapper.execute

    def noted(self: CursorWrapper, sql: str, params: Any = None) -> Any:
        said.append(sql)
        return execute(self, sql, params)

    monkeypatch.setattr(CursorWrapper, "execute", noted)
    return said


@pytest.mark.parametrize(("turns", "most"), [(0, 20), (15, 22)], ids=["new", "turns-resent"])
async def test_a_guarded_request_takes_few_statements_however_long_its_history(
    guarded_client: Client, play: Play, statements: list[str], turns: int, most: int
) -> None:
    await sync_to_async(play)(*[said(120, f"Answer {number}.") for number in range(turns + 2)])
    await guarded_client.ask(user("Something else first."))
    history: list[dict[str, Any]] = []
    for number in range(turns):
        await guarded_client.ask(*history, user(f"Question {number}?"))
        history += [user(f"Question {number}?"), assistant(f"Answer {number + 1}.")]
    statements.clear()

    await guarded_client.ask(*history, user("And now?"))

    assert len(statements) <= most
    assert sum('FROM "dialogs_prefixnode"' in one for one in statements) == bool(turns)
    of_a_course = 'FROM "dialogs_message" WHERE "dialogs_message"."course_id" = '
    assert not any(of_a_course in one for one in statements)
