"""One look at the database serves all answers that come; where nobody looks on, Redis is asked seldom."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from dialogs.driver import streaming
from dialogs.driver.streaming import LiveAnswer, StreamingAnswer, show, until_stopped
from dialogs.models import Agent, Dialog, Generation
from dialogs.pages.writes import create_dialog
from dialogs.providers.base import ReasoningDelta, TextDelta
from dialogs.turns.writes.lease import Claim
from dialogs.turns.writes.messages import post_message
from tests.builders import a_generation

ANSWERS = 3
SOON, HOUR = 10, 3600


@pytest.fixture
def generations(alice: User, agent: Agent) -> list[Generation]:
    """Answers that come, each in a dialog of its own."""
    dialogs = [create_dialog(owner=alice, agent=agent) for _ in range(ANSWERS)]
    for dialog in dialogs:
        post_message(dialog=dialog, content="Hello")
        dialog.refresh_from_db()
    return [a_generation(dialog) for dialog in dialogs]


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[set[UUID]]:
    """Which dialogs each look was about."""
    found: list[set[UUID]] = []
    real = streaming.unwanted

    def noted(dialog_ids: Sequence[UUID]) -> set[UUID]:
        found.append(set(dialog_ids))
        return real(dialog_ids)

    monkeypatch.setattr(streaming, "unwanted", noted)
    monkeypatch.setattr(streaming, "LOOK_EVERY_SECONDS", 0.05)
    monkeypatch.setattr(streaming, "FLUSH_EVERY_SECONDS", 0.0)
    return found


def comes(generation: Generation) -> asyncio.Task[None]:
    live = LiveAnswer()
    live.add(TextDelta(f"Word of {generation.pk}"))
    claim = Claim(generation.dialog_id, generation.fencing_token, 1)
    return asyncio.create_task(until_stopped(claim, generation.pk, live))


async def hello() -> StreamingAnswer:
    live = LiveAnswer()
    live.add(TextDelta("Hello"))
    return StreamingAnswer(Claim(uuid4(), 1, 1), 1, live, asyncio.get_running_loop().create_future())


async def test_an_answer_is_kept_again_once_more_of_it_came_and_the_time_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streaming, "FLUSH_EVERY_SECONDS", HOUR)
    coming = await hello()
    assert not coming.is_due
    coming.flushed_at -= HOUR
    assert coming.is_due

    coming.partial()

    coming.flushed_at -= HOUR
    assert not coming.is_due


async def test_what_is_told_begins_where_the_database_had_it_the_time_before() -> None:
    """A page that was read just before it was kept has all that comes before."""
    coming = await hello()
    begins = [coming.live.kept]
    for more in (TextDelta(" there"), ReasoningDelta("hm"), TextDelta("!")):
        coming.is_kept(coming.partial())
        begins.append(coming.live.kept)
        coming.live.add(more)

    assert begins == [(0, 0), (0, 0), (5, 0), (11, 0)]

    coming.is_kept(coming.partial())

    assert coming.live.kept == (11, 2)


@pytest.mark.django_db(transaction=True)
def test_all_answers_that_come_are_looked_at_and_kept_together(
    generations: list[Generation], looks: list[set[UUID]]
) -> None:
    stopped, *others = generations

    async def until_one_is_stopped() -> None:
        tasks = [comes(generation) for generation in generations]
        while await Generation.objects.filter(stream_seq=1).acount() < ANSWERS:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await Dialog.objects.filter(pk=stopped.dialog_id).aupdate(stop_requested=True)
        await asyncio.wait_for(tasks[0], SOON)
        assert [task.done() for task in tasks] == [True, False, False]
        before = len(looks)
        while len(looks) == before:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        for task in tasks:
            task.cancel()

    async_to_sync(until_one_is_stopped)()

    assert looks[0] == {generation.dialog_id for generation in generations}
    assert looks[-1] == {generation.dialog_id for generation in others}
    assert [one.partial_text for one in Generation.objects.order_by("pk")] == [
        f"Word of {generation.pk}" for generation in generations
    ]


@pytest.mark.django_db(transaction=True)
def test_nobody_looks_once_no_answer_comes(generations: list[Generation], looks: list[set[UUID]]) -> None:
    async def one_that_ends() -> None:
        task = comes(generations[0])
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0.2)

    async_to_sync(one_that_ends)()

    assert looks == []


@pytest.mark.django_db(transaction=True)
def test_an_answer_that_comes_after_all_others_have_ended_is_looked_at(
    generations: list[Generation], looks: list[set[UUID]]
) -> None:
    async def one_after_the_other() -> None:
        first = comes(generations[0])
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait([first])
        second = comes(generations[1])
        async with asyncio.timeout(SOON):
            while not looks:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        second.cancel()

    async_to_sync(one_after_the_other)()

    assert looks[0] == {generations[1].dialog_id}


@pytest.mark.django_db(transaction=True)
def test_what_is_looked_at_is_kept_only_where_it_is_due(
    generations: list[Generation], looks: list[set[UUID]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "FLUSH_EVERY_SECONDS", HOUR)

    async def three_looks() -> None:
        task = comes(generations[0])
        async with asyncio.timeout(SOON):
            while len(looks) < 3:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        task.cancel()

    async_to_sync(three_looks)()

    assert not Generation.objects.filter(stream_seq__gt=0).exists()


@pytest.mark.django_db(transaction=True)
def test_a_look_that_fails_ends_what_it_was_about(
    generations: list[Generation], looks: list[set[UUID]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(dialog_ids: Sequence[UUID]) -> set[UUID]:
        raise ValueError("a fault of ours")

    monkeypatch.setattr(streaming, "unwanted", fail)

    async def all_fail() -> list[BaseException | None]:
        tasks = [comes(generation) for generation in generations]
        await asyncio.wait(tasks, timeout=SOON)
        return [task.exception() for task in tasks]

    assert [str(error) for error in async_to_sync(all_fail)()] == ["a fault of ours"] * ANSWERS


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_stopped", [False, True])
def test_an_answer_that_cannot_be_kept_ends_alone_even_if_it_was_stopped_just_then(
    generations: list[Generation], looks: list[set[UUID]], monkeypatch: pytest.MonkeyPatch, *, is_stopped: bool
) -> None:
    refused = generations[0]
    Dialog.objects.filter(pk=refused.dialog_id).update(stop_requested=is_stopped)
    real = streaming.generations._flush

    def flush(generation_id: int, *kept: Any) -> int:
        if generation_id == refused.pk:
            raise ValueError("no database takes this")
        return real(generation_id, *kept)

    monkeypatch.setattr(streaming.generations, "_flush", flush)

    async def until_the_others_are_kept() -> list[bool]:
        tasks = [comes(generation) for generation in generations]
        await asyncio.wait(tasks[:1], timeout=SOON)
        async with asyncio.timeout(SOON):
            while len(looks) < 3 or await Generation.objects.filter(stream_seq=1).acount() < ANSWERS - 1:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        done = [task.done() for task in tasks]
        for task in tasks[1:]:
            task.cancel()
        assert str(tasks[0].exception()) == ("None" if is_stopped else "no database takes this")
        return done

    assert async_to_sync(until_the_others_are_kept)() == [True, False, False]


@pytest.mark.parametrize(("is_seen", "most"), [(False, 3), (True, 100)])
def test_an_answer_that_nobody_sees_come_is_told_seldom(
    is_seen: bool, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []

    async def tell(_dialog_id: UUID, **state: Any) -> bool:
        told.append(state["text"])
        return is_seen

    monkeypatch.setattr(streaming, "stream_state", tell)
    monkeypatch.setattr(streaming, "SHOW_EVERY_SECONDS", 0.001)
    monkeypatch.setattr(streaming, "UNSEEN_SECONDS", 0.2)

    async def an_answer() -> None:
        live = LiveAnswer()
        shown = asyncio.create_task(show(live, dialog_id=uuid4(), generation_id=1))
        for _piece in range(40):
            live.add(TextDelta("word "))
            await asyncio.sleep(0.01)
        live.close()
        await shown

    async_to_sync(an_answer)()

    assert (len(told) > 10) == is_seen
    assert len(told) <= most
