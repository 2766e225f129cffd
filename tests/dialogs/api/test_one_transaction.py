"""A request with its first call, and an answer with the end of its turn, are stored at once; if that fails, apart."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async

from dialogs.api import turn
from dialogs.models import Dialog, Generation, PrefixNode
from tests.dialogs.api.conftest import Client, Play, assistant, said, user

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
Status = Generation.Status
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
