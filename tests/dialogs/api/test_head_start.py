"""A client hears its answer while its request is still being stored, and nothing of that is lost or told twice."""

from __future__ import annotations

import asyncio
import errno
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from dialogs.api import reading, turn
from dialogs.api.speculation import SpeculativeRequest
from dialogs.models import Dialog, Generation, Message, PrefixNode
from dialogs.providers.base import ChatMessage, ChatRequest
from dialogs.providers.scripted import Scripted
from tests.dialogs.api.conftest import Client, Play, assistant, said, text_of, user

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
Status = Generation.Status


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Nothing is stored until this is set."""
    may, take_up = threading.Event(), turn.take_up

    def after_that(**asked: Any) -> Any:
        assert may.wait(20)
        return take_up(**asked)

    monkeypatch.setattr(turn, "take_up", after_that)
    yield may
    may.set()


@pytest.fixture
def mistaken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The speculative request is another than the one the driver makes."""
    speculate: Callable[..., SpeculativeRequest] = reading.speculate

    def wrong(**asked: Any) -> SpeculativeRequest:
        other = ChatRequest(model="tiny", messages=(ChatMessage(role="user", content="something else"),))
        return replace(speculate(**asked), request=other)

    monkeypatch.setattr(reading, "speculate", wrong)


class Listening:
    """A client that reads a stream piece by piece."""

    def __init__(self, client: Client) -> None:
        self.heard = b""
        self._changed = asyncio.Event()
        self.task = asyncio.create_task(self._listen(client))

    async def _listen(self, client: Client) -> None:
        response = await client.ask(user("Count"), stream=True)
        async for piece in response.streaming_content:
            self.heard += piece
            self._changed.set()

    async def until(self, words: bytes) -> None:
        async with asyncio.timeout(10):
            while words not in self.heard:
                await self._changed.wait()
                self._changed.clear()

    @property
    def text(self) -> str:
        events = [one.removeprefix("data: ") for one in self.heard.decode().split("\n\n")]
        return text_of([json.loads(one) for one in events if one and one != "[DONE]"])


async def at_rest() -> Generation:
    async with asyncio.timeout(10):
        while not await Dialog.objects.filter(answer_due=False, lease_until=None).aexists():  # noqa: ASYNC110  a row
            await asyncio.sleep(0.02)
    return await Generation.objects.select_related("message").aget()


@pytest.mark.parametrize("pieces", [["One."], ["One, ", "two, ", "three."]], ids=["at-once", "in-pieces"])
async def test_the_first_words_do_not_wait_until_the_request_is_stored(
    client_of_alice: Client, play: Play, stored: threading.Event, pieces: list[str]
) -> None:
    read = await sync_to_async(play)(said(120, pieces))

    client = Listening(client_of_alice)
    await client.until(b"One")
    assert not await Dialog.objects.aexists()
    stored.set()
    await client.task

    assert client.text == "".join(pieces)
    kept = await at_rest()
    assert (kept.status, kept.message.content, kept.prompt_tokens) == (Status.FINISHED, "".join(pieces), 120)
    assert len(read()) == 1


async def test_an_answer_is_over_for_the_client_only_when_it_is_stored(
    client_of_alice: Client, play: Play, stored: threading.Event
) -> None:
    await sync_to_async(play)(said(120, "One."))

    client = Listening(client_of_alice)
    await client.until(b"One")
    await asyncio.sleep(0.2)
    assert b'"finish_reason":"stop"' not in client.heard
    stored.set()
    await client.task

    assert client.heard.endswith(b"data: [DONE]\n\n")


async def test_what_a_client_heard_before_it_left_is_kept(
    client_of_alice: Client, play: Play, stored: threading.Event
) -> None:
    await sync_to_async(play)(said(120, [f"{number} " for number in range(200)], delay=0.05))

    client = Listening(client_of_alice)
    await client.until(b'"content":"2 "')
    client.task.cancel()
    stored.set()

    kept = await at_rest()
    assert kept.status == Status.STOPPED
    assert kept.message.content.startswith("0 1 2")


async def test_where_nothing_can_be_stored_the_client_is_told_and_the_model_is_stopped(
    client_of_alice: Client, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []
    stream = Scripted.stream

    async def watched(self: Scripted, request: ChatRequest) -> Any:
        try:
            async for event in stream(self, request):
                yield event
        finally:
            ended.append("ended")

    def full_disk(**_asked: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Scripted, "stream", watched)
    monkeypatch.setattr(turn, "take_up", full_disk)
    monkeypatch.setattr(turn, "HEAD_START_SECONDS", 0.3)
    await sync_to_async(play)({"text": ["One, "], "hang": True})

    lines = await client_of_alice.lines(user("Count"))

    assert json.loads(lines[-1])["error"]["code"] == "storage_full"
    assert ended == ["ended"]


@pytest.mark.usefixtures("mistaken")
async def test_an_answer_to_something_else_that_nobody_heard_is_asked_for_anew(
    client_of_alice: Client, play: Play
) -> None:
    read = await sync_to_async(play)({"match": "something else", "text": [], "hang": True}, said(120, "One."))

    response = await client_of_alice.ask(user("Count"))

    assert response.json()["choices"][0]["message"]["content"] == "One."
    assert [one["messages"][-1]["content"] for one in read()] == ["something else", "Count"]


@pytest.mark.usefixtures("mistaken")
async def test_an_answer_to_something_else_that_was_heard_is_an_error(
    client_of_alice: Client, play: Play, stored: threading.Event
) -> None:
    await sync_to_async(play)({"match": "something else", "text": ["Wrong. "], "hang": True}, said(120, "One."))

    client = Listening(client_of_alice)
    await client.until(b"Wrong")
    stored.set()
    await client.task

    assert json.loads(client.heard.decode().strip().split("data: ")[-1])["error"]["code"] == "provider_failed"
    failed = await at_rest()
    assert (failed.status, failed.message) == (Status.FAILED, None)
    assert not await Message.objects.filter(role="assistant").aexists()


# A request with its first call, and an answer with the end of its turn, are stored at once; if that fails, apart.


BEGUN, CONCLUDED = "begun", "know_again"


def fails(*_args: Any, **_kwargs: Any) -> None:
    raise OSError("No space left on device")


@pytest.mark.parametrize("step", [BEGUN, CONCLUDED])
async def test_where_they_cannot_be_stored_at_once_nothing_is_lost(
    client_of_alice: Client, play: Play, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    await sync_to_async(play)(said(120, "One."))
    real, tried = getattr(turn, step), list[str]()

    def fails_once(*args: Any, **kwargs: Any) -> Any:
        tried.append(step)
        return fails() if len(tried) == 1 else real(*args, **kwargs)

    monkeypatch.setattr(turn, step, fails_once)

    response = await client_of_alice.ask(user("Count"))

    assert tried
    assert response.json()["choices"][0]["message"]["content"] == "One."
    dialog = await Dialog.objects.aget()
    assert (dialog.is_busy, dialog.answer_due, dialog.lease_until) == (False, False, None)
    kept = await Generation.objects.select_related("message").aget()
    assert (kept.status, kept.message.content) == (Status.FINISHED, "One.")
    # The client's message, and the answer.
    assert await PrefixNode.objects.acount() == 2


async def test_an_outcome_that_is_not_read_is_the_one_that_is_stored(
    client_of_alice: Client, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn, "conclude", fails)
    monkeypatch.setattr(turn, "outcome_of", fails)
    await sync_to_async(play)(said(120, "One."), said(240, "Two."))

    await client_of_alice.ask(user("Count"))
    response = await client_of_alice.ask(user("Count"), assistant("One."), user("On"))

    last = await Generation.objects.select_related("reading").alatest("pk")
    assert response.json()["dominds"] == {
        "dialog": str(last.dialog_id),
        "level": last.reading.level,
        "compactions": 0,
        "generations": 1,
    }
    assert response.json()["usage"]["prompt_tokens"] == last.prompt_tokens == 240
    assert await Dialog.objects.acount() == 1
