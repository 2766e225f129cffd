"""The published document: readable by everybody, and true of what is answered (tests/clients/ tries it whole)."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient
from jsonschema import Draft202012Validator

from dialogs.api import openapi
from dialogs.api.errors import KNOWN
from dialogs.api.openapi import document
from dialogs.models import LLM, Agent, Provider
from tests.dialogs.api.conftest import Client, Play, a_tool, assistant, calling, long_history, said, user
from tests.dialogs.api.mutating import CALL, RESULT
from tests.dialogs.api.test_schemas import EVERY_ERROR
from tests.imports import ROOT

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


def validator(schema: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": f"#/components/schemas/{schema}", "components": document()["components"]})


def is_valid(body: dict[str, Any]) -> bool:
    return validator("ChatBody").is_valid({"model": "m", "messages": [user("Hello")], **body})


async def test_everybody_may_read_it() -> None:
    response = await AsyncClient().get("/v1/openapi.json")

    assert response.status_code == 200
    assert response.json() == document()
    assert list(document()["paths"]) == ["/models", "/models/{model}", "/chat/completions", "/tokens/count"]


async def test_every_failure_has_a_status_that_is_documented() -> None:
    documented = set(document()["paths"]["/chat/completions"]["post"]["responses"])

    assert {str(status) for status, _type, _code in KNOWN.values()} <= documented


async def test_every_code_is_explained_to_people() -> None:
    explained = (ROOT / "docs" / "clients.md").read_text()
    codes = {code for _status, _type, code in KNOWN.values()} | {error.code for error, *_more in EVERY_ERROR.values()}

    assert [code for code in sorted(codes) if f"`{code}`" not in explained] == []


@pytest.mark.parametrize(
    ("body", "valid"),
    [
        ({"stream": True, "anything": {"else": 1}}, True),
        ({"stream": "true"}, False),
        ({"n": 2}, False),
        ({"functions": []}, True),
        ({"functions": [{"name": "f"}]}, False),
        ({"messages": []}, False),
        ({"messages": [{"role": "tool", "content": "x"}]}, False),
        ({"messages": [user("Hello"), assistant("", tool_calls=[CALL]), RESULT]}, True),
        ({"messages": [user([{"type": "text"}])]}, False),  # type: ignore[arg-type]
        ({"messages": [user([{"type": "refusal"}, {"type": "text", "text": "x"}])]}, True),  # type: ignore[arg-type]
    ],
)
async def test_it_takes_the_bodies_that_are_taken(
    client_of_alice: Client, play: Play, body: dict[str, Any], valid: bool
) -> None:
    await sync_to_async(play)(said(120, "Hi."))

    answered = await client_of_alice.post({"model": client_of_alice.model, "messages": [user("Hello")], **body})

    assert is_valid(body) == valid
    assert answered.status_code == (200 if valid else 400)


@pytest.mark.parametrize(("value", "valid"), [("", True), ("content", True), ("often", False)])
async def test_it_takes_the_notices_that_are_taken(guarded_client: Client, play: Play, value: str, valid: bool) -> None:
    await sync_to_async(play)(said(700, "Noted."))
    parameters = document()["paths"]["/chat/completions"]["post"]["parameters"]
    schema = next(one["schema"] for one in parameters if one["name"] == "X-Dominds-Notices")

    response = await guarded_client.ask(user("Hello"), headers={"X-Dominds-Notices": value})

    assert Draft202012Validator(schema).is_valid(value) is valid
    assert (response.status_code == 200) is valid


async def test_a_stream_is_made_of_the_chunks_that_it_describes(guarded_client: Client, play: Play) -> None:
    usage = {"prompt_tokens": 700, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 3}}
    call = calling(700, "weather")["tool_calls"]
    step = {"reasoning": "Hm.", "text": "Well.", "tool_calls": call, "usage": usage, "finish": "tool_calls"}
    await sync_to_async(play)(step)

    chunks = await guarded_client.stream(
        *long_history(30), user("Weather?"), tools=[a_tool("weather")], stream_options={"include_usage": True}
    )

    chunk = validator("Chunk")
    assert [list(chunk.iter_errors(one)) for one in chunks] == [[]] * len(chunks)
    told = {name for one in chunks for name in one}
    assert told == set(openapi.Chunk.model_fields)


async def test_it_takes_no_chunk_with_a_field_of_an_upstreams() -> None:
    head = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": []}

    assert validator("Chunk").is_valid(head)
    assert not validator("Chunk").is_valid({**head, "provider": "upstream"})


TAUGHT = {"context_length": 2048, "context_length_source": "refusal", "detected_context_length": 8192}


@pytest.mark.parametrize(
    ("fields", "length", "which", "window"),
    [
        ({}, 3500, "kept_to", 100_000),
        # Nobody keeps a request to the limit there.
        ({"compaction": "off"}, 100_000, "window", 100_000),
        # Not the window that the server had listed.
        ({"compaction": "off"} | TAUGHT, 2048, "window", 2048),
    ],
)
async def test_the_list_says_which_number_it_tells(
    client_of_alice: Client, guarded: Agent, fields: dict[str, Any], length: int, which: str, window: int
) -> None:
    await LLM.objects.aupdate(**(fields or {"compaction": "automatic"}))

    listed = {one["id"]: one for one in (await client_of_alice.get("/v1/models")).json()["data"]}

    assert listed["helper"]["context_length"] == length
    assert listed["helper"]["dominds"] == {"context_length_is": which, "window": window}
    assert openapi.Model.model_validate(listed["scripted/tiny"])


async def test_the_list_holds_what_can_be_asked(
    client_of_alice: Client, guarded: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosted = await Provider.objects.acreate(
        name="hosted", kind="openai", base_url="https://llm.example/v1", api_key_env="A_KEY_OF_OURS"
    )
    large = await LLM.objects.acreate(provider=hosted, model_id="large")
    await Agent.objects.acreate(slug="scholar", name="Scholar", llm=large)
    assert await ids(client_of_alice) == ["helper", "scripted/tiny"]

    monkeypatch.setenv("A_KEY_OF_OURS", "sk-1")
    assert await ids(client_of_alice) == ["helper", "hosted/large", "scholar", "scripted/tiny"]

    await Provider.objects.filter(pk=hosted.pk).aupdate(enabled=False)
    assert await ids(client_of_alice) == ["helper", "scripted/tiny"]


async def ids(client: Client) -> list[str]:
    return sorted(one["id"] for one in (await client.get("/v1/models")).json()["data"])
