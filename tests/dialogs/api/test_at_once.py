"""Requests of one key at the same time, in orders by chance: each is answered unless its client left, and what was said
is kept."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from dialogs.common.errors import DialogError
from dialogs.compaction.writes.view_changes import redo, undo
from dialogs.models import Dialog, Generation, Message
from health.models import CompactionRun
from tests.dialogs.api.conftest import Client, Play, assistant, long_history, said, text_of, user

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]

CLIENTS, TURNS = 4, 5
ASKED = ("Go on.", "And now?", "What did you say about question 12?", "Try again.")


class Talk:
    """Clients go on with each other's histories, edit them, ask the same at the same moment, and leave; meanwhile the
    person undoes and redoes what was compacted."""

    def __init__(self, client: Client, chance: Random) -> None:
        self.client, self.chance = client, chance
        self.histories: list[list[dict[str, Any]]] = [long_history(chance.choice((2, 12, 20)))]
        self.sent: list[list[dict[str, Any]]] = []

    async def go_on(self) -> None:
        for _turn in range(TURNS):
            await asyncio.sleep(self.chance.random() * 0.2)
            history = [*self._history(), user(self.chance.choice(ASKED))]
            patience = 0.5 * self.chance.random() if self.chance.random() < 0.1 else None
            with suppress(TimeoutError):
                answer = await asyncio.wait_for(self._ask(history), patience)
                self.sent.append(history)
                self.histories.append([*history, assistant(answer)])

    async def undo_and_redo(self) -> None:
        while True:
            await asyncio.sleep(0.3 * self.chance.random())
            await sync_to_async(self._undo_or_redo)()

    def _history(self) -> list[dict[str, Any]]:
        history = self.chance.choice(self.histories)
        is_edited = self.chance.random() < 0.2
        return history[: 2 * self.chance.randrange(len(history) // 2)] if is_edited else history

    async def _ask(self, history: list[dict[str, Any]]) -> str:
        if self.chance.random() < 0.5:
            return text_of(await self.client.stream(*history))
        response = await self.client.ask(*history)
        assert response.status_code == 200, response.content
        return response.json()["choices"][0]["message"]["content"]

    def _undo_or_redo(self) -> None:
        for run in CompactionRun.objects.select_related("dialog__owner").order_by("?")[:1]:
            with suppress(DialogError):
                self.chance.choice((undo, redo))(dialog=run.dialog, run_id=run.pk, by=run.dialog.owner)


# With each of these four, a compaction that was not copied whole had failed a request.
@pytest.mark.parametrize(
    "seed", [0, 2, 3, 5, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(100, 200))]
)
async def test_clients_at_once_are_answered_and_nothing_is_lost(guarded_client: Client, play: Play, seed: int) -> None:
    chance = Random(seed)
    answers = (
        said(900, [f"Answer {at}", ", whole."], delay=0.3 * chance.random()) for at in range(2 * CLIENTS * TURNS)
    )
    await sync_to_async(play)(*answers)
    talk = Talk(guarded_client, chance)
    person = asyncio.create_task(talk.undo_and_redo())

    async with asyncio.timeout(120):
        await asyncio.gather(*(talk.go_on() for _client in range(CLIENTS)))

    person.cancel()
    kept = await sync_to_async(branches)()
    assert all(tuple(one["content"] for one in history) in kept for history in talk.sent)
    async with asyncio.timeout(10):
        while await sync_to_async(unended)():  # noqa: ASYNC110  rows are looked for, of what a client left
            await asyncio.sleep(0.1)


def branches() -> set[tuple[str, ...]]:
    """What stands from the first message of a dialog down to each of its messages."""
    texts: dict[int, tuple[str, ...]] = {}
    for message in Message.objects.order_by("dialog", "seq"):
        texts[message.pk] = (*texts.get(message.parent_id or 0, ()), message.content)
    return set(texts.values())


def unended() -> bool:
    ended = (Generation.Status.FINISHED, Generation.Status.STOPPED)
    at_work = any(dialog.is_busy or dialog.answer_due for dialog in Dialog.objects.all())
    return at_work or Generation.objects.exclude(status__in=ended).exists()
