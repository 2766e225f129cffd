"""Thousands of wrong bodies: each is answered or refused in words, soon, and nobody learns what another's key said."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth.models import User

from dialogs.api import openapi
from dialogs.api.writes.api_keys import create_key
from dialogs.models import LLM, Agent, Dialog, Provider
from tests.dialogs.api.conftest import Client, Play, assistant, said, user
from tests.dialogs.api.mutating import HISTORY, NOTICES, some_body
from tests.hanging import portions

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]

CANARY = "the-canary-that-only-alice-knows"
MODELS = ("scripted/tiny", "helper")
PATIENCE_SECONDS = 60


@pytest.mark.parametrize(("count", "seed"), portions(60, 10_000))
async def test_no_wrong_body_breaks_hangs_or_reads_what_is_anothers(
    count: int, seed: int, alice: User, bob: User, agent: Agent, llm: LLM, provider: Provider, play: Play
) -> None:
    chance = Random(seed)
    await sync_to_async(play)(said(120, "Noted."))
    (alices, bobs) = [Client(await _secret(owner)) for owner in (alice, bob)]
    # What Bob's bodies begin with too, so that their hashes would meet.
    await alices.ask(*HISTORY[:2], user(CANARY), headers={"X-Dominds-Chat": "chat"})
    await alices.ask(*HISTORY[:2], user(CANARY), assistant("Noted."), user("Well?"))
    hers = await Dialog.objects.afirst()
    for _number in range(count // 2):
        await _checked(alices, chance, dialog="")
    log = _sent_now(provider)
    log.unlink()

    for _number in range(count // 2):
        answered = await _checked(bobs, chance, dialog=str(hers.pk) if hers and chance.random() < 0.1 else "")
        assert CANARY.encode() not in answered

    assert CANARY not in log.read_text()
    assert log.read_text().count("\n") > count // 20


async def _secret(owner: User) -> str:
    _key, secret = await sync_to_async(create_key)(owner=owner, name="laptop")
    return secret


def _sent_now(provider: Provider) -> Path:
    return Path(settings.DOMINDS_DATA_DIR) / f"{provider.base_url}.requests.jsonl"


async def _checked(client: Client, chance: Random, *, dialog: str) -> bytes:
    """The bytes of the answer, which is one that is documented."""
    body = some_body(chance, chance.choice(MODELS))
    headers = {"X-Dominds-Notices": chance.choice(NOTICES), "X-Dominds-Chat": "chat", "X-Dominds-Dialog": dialog}
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            response = await client.post(body, headers=headers)
            raw = await _read(response)
    except TimeoutError:
        raise AssertionError(f"{len(body)} bytes: {body[:2000]!r}") from None
    _check(response, raw, body)
    return raw


async def _read(response: Any) -> bytes:
    return b"".join([part async for part in response.streaming_content]) if response.streaming else response.content


def _check(response: Any, raw: bytes, body: bytes) -> None:
    documented = {413} if len(body) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE else {200, 400, 404}
    assert response.status_code in documented, (response.status_code, raw[:300], body[:2000])
    if response.status_code != 200:
        openapi.Refusal.model_validate_json(raw)
    elif response.headers["Content-Type"] == "application/json":
        openapi.Completion.model_validate_json(raw)
    else:
        *events, last, _end = raw.decode().split("\n\n")
        # A failure that comes late, as on a busy machine, is an event.
        if last != "data: [DONE]":
            openapi.Refusal.model_validate_json(last.removeprefix("data: "))
        for event in (event for event in events if not event.startswith(":")):
            openapi.Chunk.model_validate_json(event.removeprefix("data: "))
