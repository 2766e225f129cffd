"""Calls and results that do not pair in what a client sends: every service refuses these, so they are put right."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async

from dialogs.models import Message
from health.compaction.reading.pairing import NO_RESULT, STRAY_RESULT
from health.models import CompactionRun
from tests.dialogs.api.conftest import Client, Play, assistant, long_history, said, user

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


def asking(*ids: str) -> dict[str, Any]:
    function = {"name": "weather", "arguments": "{}"}
    return assistant("", tool_calls=[{"id": one, "type": "function", "function": function} for one in ids])


def result(call_id: str, text: str = "rain") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


HISTORIES = {
    "a call without a result": [user("Weather?"), asking("a"), user("Well?")],
    "one of two calls without a result": [user("Weather?"), asking("a", "b"), result("b"), user("Well?")],
    "a result without a call": [user("Weather?"), result("a"), assistant("Rain."), user("Well?")],
    "a result that comes twice": [user("Weather?"), asking("a"), result("a"), result("a", "snow"), user("Well?")],
    "a result that comes late": [user("Weather?"), asking("a"), user("Well?"), result("a")],
    "two calls of one id": [user("Weather?"), asking("a", "a"), result("a"), result("a", "snow")],
    "a history that ends with a call": [user("Weather?"), asking("a")],
}


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES.keys())
async def test_the_model_is_asked_with_every_word_of_it(
    client_of_alice: Client, play: Play, history: list[dict[str, Any]]
) -> None:
    """The scripted provider refuses what does not pair, as services do."""
    read = await sync_to_async(play)(said(120, "It rains."))

    response = await client_of_alice.ask(*history)

    assert response.status_code == 200
    sent = "\n".join(one["content"] for one in read()[-1]["messages"])
    assert all(one["content"] in sent for one in history)
    stored = Message.objects.exclude(content="It rains.").order_by("seq").values_list("role", "content")
    assert [pair async for pair in stored] == [(one["role"], one["content"]) for one in history], "kept as it came"


async def test_what_was_put_right_says_so(client_of_alice: Client, play: Play) -> None:
    read = await sync_to_async(play)(said(120))

    await client_of_alice.ask(user("Weather?"), asking("a", "b"), result("b"), result("c", "snow"), user("Well?"))

    sent = [(one["role"], one["tool_call_id"], one["content"]) for one in read()[-1]["messages"]]
    assert sent[2:] == [
        ("tool", "b", "rain"),
        ("tool", "a", NO_RESULT),
        ("user", None, f"{STRAY_RESULT}\nsnow"),
        ("user", None, "Well?"),
    ]


async def test_what_a_client_asks_beside_its_conversation_is_put_right_too(client_of_alice: Client, play: Play) -> None:
    await sync_to_async(play)(said(120, "A title"))

    response = await client_of_alice.ask(
        *HISTORIES["a call without a result"], headers={"X-Dominds-Task": "title_generation"}
    )

    assert response.status_code == 200


@pytest.mark.parametrize("name", HISTORIES)
async def test_a_long_one_is_compacted_all_the_same(guarded_client: Client, play: Play, name: str) -> None:
    await sync_to_async(play)(said(120))

    response = await guarded_client.ask(*long_history(12, 6), *HISTORIES[name])

    assert response.status_code == 200
    assert [run.status async for run in CompactionRun.objects.all()] == ["applied"]
