"""Two tabs of Alice's and two workers at the same time, in orders by chance: no page fails, and nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random
from threading import Event
from time import sleep
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import connections
from django.db.models.functions import Length
from django.test import Client

from dialogs.compaction.work import perform
from dialogs.driver.run import drive
from dialogs.models import Agent, Dialog, Message, MessageMark, QueuedMessage
from dialogs.models.message import INSERTED, MessageOrigin
from dialogs.turns.reads.turns import due_dialogs
from health.models import CompactionRun
from tests.dialogs.compacting_builders import a_history, guard, long_text
from tests.dialogs.driver.conftest import Play, a_call, drive_until_idle, said
from tests.dialogs.driver.event_orders import EventOrders

pytestmark = pytest.mark.django_db(transaction=True)

ACTS = 25
DONE = 204
# As in the event orders: more of them would leave a small room for nothing else.
MOST_MARKS, MOST_MARKED_CHARS = 4, 600


class Tab:
    """A person at one page of the dialog, who does one thing after another. What the dialog refuses at that moment is
    answered with the reason; `sent` is what was accepted, and `cancelled` what was then taken back."""

    def __init__(self, alice: User, dialog: Dialog, seed: int) -> None:
        self.dialog, self.chance, self.name = dialog, Random(seed), f"Tab {seed}"
        self.client = Client()
        self.client.force_login(alice)
        self.sent: list[str] = []
        self.cancelled: set[str] = set()

    def act_by_chance(self) -> None:
        acts = [self.send, self.send, self.send, self.rest, self.rest, self.look, self.edit, self.choose, self.stop]
        acts += [self.pause, self.change_view, self.compact, self.pin, self.begin_a_course, self.cancel]
        try:
            for number in range(ACTS):
                sleep(0.2 * self.chance.random())
                self.chance.choice(acts)(number)
        finally:
            connections.close_all()

    def send(self, number: int) -> None:
        words = f"{self.name} asks {number}. {long_text(number, self.chance.choice((1, 6, 25)))}"
        assert self.post("send/", content=words, sending=f"{self.name}-{number}") == DONE
        self.sent.append(words)

    def rest(self, _number: int) -> None:
        """Until the dialog does, or for two seconds."""
        for _look in range(40):
            if not Dialog.objects.get(pk=self.dialog.pk).is_busy:
                return
            sleep(0.05)

    def look(self, _number: int) -> None:
        for part in ("", "context.json", "archive-of-context/", "rules/"):
            assert self.client.get(f"/dialogs/{self.dialog.pk}/{part}").status_code == 200, part

    def edit(self, number: int) -> None:
        words = f"{self.name} would rather ask {number}."
        if self.post(f"messages/{self.typed()}/edit/", content=words) == DONE:
            self.sent.append(words)

    def choose(self, _number: int) -> None:
        self.post(f"messages/{self.typed()}/show/")

    def stop(self, _number: int) -> None:
        self.post("stop/")

    def pause(self, _number: int) -> None:
        self.post(self.chance.choice(("pause/", "go-on/")))

    def change_view(self, _number: int) -> None:
        if run := self.one_of(CompactionRun.objects.filter(dialog=self.dialog)):
            self.post(f"compactions/{run}/{self.chance.choice(('undo', 'redo', 'cancel'))}/")

    def compact(self, _number: int) -> None:
        self.post("compaction/", strategy="")

    def pin(self, _number: int) -> None:
        """What a person sees, which the prompts that Dominds inserts are not."""
        sized = Message.objects.filter(dialog=self.dialog).annotate(chars=Length("content"))
        seen = sized.filter(chars__range=(1, MOST_MARKED_CHARS)).exclude(origin__in=INSERTED)
        if (one := self.one_of(seen)) and MessageMark.objects.count() < MOST_MARKS:
            self.post(f"messages/{one}/pin/")

    def begin_a_course(self, _number: int) -> None:
        self.post("course/")

    def cancel(self, _number: int) -> None:
        waiting = dict(QueuedMessage.objects.filter(dialog=self.dialog).values_list("pk", "content"))
        for one in list(waiting)[:1]:
            if self.post(f"queued/{one}/cancel/") == DONE:
                self.cancelled.add(waiting[one])

    def typed(self) -> int | None:
        return self.one_of(Message.objects.filter(dialog=self.dialog, origin=MessageOrigin.TYPED))

    def one_of(self, rows: Any) -> int | None:
        ids = list(rows.values_list("pk", flat=True))
        return self.chance.choice(ids) if ids else None

    def post(self, part: str, **fields: str) -> int:
        response = self.client.post(f"/dialogs/{self.dialog.pk}/{part}", fields, headers={"hx-request": "true"})
        assert response.status_code in (DONE, 404, 422), (part, response.content[:500])
        return response.status_code


def work(ended: Event) -> None:
    """As the workers of the queue do: turns that are due, and compactions that wait, the last ones too."""
    try:
        is_last = False
        while not is_last:
            is_last = ended.wait(0.02)
            for dialog_id in due_dialogs():
                async_to_sync(drive)(dialog_id)
            for run in CompactionRun.objects.filter(status=CompactionRun.Status.QUEUED):
                perform(run.pk, embedder="static")
    finally:
        connections.close_all()


def answers(chance: Random) -> Iterator[dict[str, Any]]:
    for number in range(20 * ACTS):
        if chance.random() < 0.3:
            call = a_call("add_reminder", json.dumps({"content": f"Noted {number}."}), f"call-{number}")
            yield said(900, "", tool_calls=[call], finish="tool_calls")
        else:
            words = [f"Answer {number}. ", long_text(number, chance.choice((1, 6, 25)))]
            yield said(900, words, delay=0.1 * chance.random())


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 100))])
def test_what_two_tabs_and_two_workers_do_at_once_loses_nothing(
    alice: User, dialog: Dialog, play: Play, seed: int
) -> None:
    guard(dialog, 3500)
    Agent.objects.update(instructions="You help. Rule 7 holds.")
    a_history(dialog, pairs=4)
    read = play(*answers(Random(seed)))
    tabs, ended = [Tab(alice, dialog, 2 * seed), Tab(alice, dialog, 2 * seed + 1)], Event()

    with ThreadPoolExecutor(4) as threads:
        workers = [threads.submit(work, ended) for _each in range(2)]
        acting = [threads.submit(tab.act_by_chance) for tab in tabs]
        failed = [one.exception() for one in acting]
        ended.set()

    assert [*failed, *(one.exception() for one in workers)] == [None] * 4
    tabs[0].post("go-on/")
    dialog.refresh_from_db()
    drive_until_idle(dialog)
    texts = list(Message.objects.filter(dialog=dialog).values_list("content", flat=True))
    cancelled = tabs[0].cancelled | tabs[1].cancelled
    sent = [words for tab in tabs for words in tab.sent]
    assert [texts.count(words) for words in sent] == [words not in cancelled for words in sent]
    all_of_it_holds(dialog, read())


def all_of_it_holds(dialog: Dialog, requests: list[dict[str, Any]]) -> None:
    """What holds after events one after another holds after events at once."""
    orders = EventOrders()
    orders.dialog, orders.said, orders.requests, orders.untried = dialog, {}, requests, requests
    orders.all_of_it_holds()
