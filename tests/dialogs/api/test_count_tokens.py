"""`POST /v1/tokens/count`: how many tokens a text, or messages with their tools, would likely be for a model."""

from __future__ import annotations

import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from dialogs.api.writes.api_keys import create_key
from dialogs.context.estimate import present_tokens
from dialogs.models import Agent, Dialog
from health.tokens.counters import count_text
from health.tokens.messages import count_messages
from tests.dialogs.api.conftest import Client, Play, a_tool, assistant, said, user
from tests.dialogs.api.test_openapi import validator

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
TEXT = "How long is this? 这有多长？"


async def count(client: Client, **body: Any) -> Any:
    data = json.dumps({"model": "helper", **body})
    return await client.http.post("/v1/tokens/count", data, content_type="application/json", headers=client.headers)


@pytest.fixture(autouse=True)
def named(agent: Agent) -> None:
    """A model whose vocabulary is known: without a margin."""
    agent.llm.model_id = "gpt-4o"
    agent.llm.save()


async def test_a_text_is_counted_as_the_library_does(client_of_alice: Client) -> None:
    answer = await count(client_of_alice, model="scripted/gpt-4o", text=TEXT)

    told = answer.json()
    assert validator("Counted").is_valid(told)
    assert (told["tokens"], told["kind"], told["grade"]) == (count_text(TEXT, "gpt-4o"), "estimated", "exact")
    assert not await Dialog.objects.aexists(), "counting begins nothing"


async def test_messages_are_counted_with_their_tools_and_images(client_of_alice: Client) -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    messages = [user(TEXT), user([{"type": "text", "text": "And?"}, picture])]  # type: ignore[arg-type]

    answer = await count(client_of_alice, model="helper", messages=messages, tools=[a_tool("look")])

    assert answer.json()["tokens"] == count_messages(messages, "gpt-4o", [a_tool("look")])


async def test_it_is_what_the_guard_reckons_with(client_of_alice: Client, play: Play, agent: Agent) -> None:
    await sync_to_async(play)(said(None, "Hi."))
    await Agent.objects.filter(pk=agent.pk).aupdate(instructions="", context_budget=True, context_limit=3500)
    asked = await client_of_alice.ask(user(TEXT), model="helper")
    assert asked.status_code == 200, asked.json()

    answer = await count(client_of_alice, messages=[user(TEXT), assistant("Hi.")])

    dialog = await Dialog.objects.select_related("agent", "llm__provider", "client", "current_leaf").aget()
    assert answer.json()["tokens"] == await sync_to_async(present_tokens)(dialog)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"text": "x", "messages": [user("x")]}, 400),
        ({"text": 5}, 400),
        ({"text": "x", "model": "nobody/knows"}, 404),
        ({"text": ""}, 200),
        ({"text": None, "messages": []}, 200),
    ],
)
async def test_what_is_wrong_is_told(client_of_alice: Client, body: dict[str, Any], status: int) -> None:
    answer = await count(client_of_alice, **{"model": "helper", **body})

    assert answer.status_code == status
    assert validator("CountBody").is_valid({"model": "helper", **body}) == (status != 400)


@pytest.mark.parametrize(
    ("scope", "models", "status"), [("read", [], 200), ("chat_only", [], 200), ("chat", ["scripted/gpt-4o"], 404)]
)
async def test_every_key_counts_for_the_models_that_it_may_use(
    alice: User, scope: str, models: list[str], status: int
) -> None:
    _key, secret = await sync_to_async(create_key)(owner=alice, name="K", scope=scope, allowed_models=models)

    assert (await count(Client(secret), model="helper", text="x")).status_code == status
    assert (await count(Client("dk-x"), model="helper", text="x")).status_code == 401
