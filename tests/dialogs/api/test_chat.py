"""A conversation through `/v1`: what a client gets, what is stored of it, and how it is known again."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async

from dialogs.models import Dialog, Message
from tests.dialogs.api.conftest import Client, Play, assistant, said, text_of, user

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


async def test_a_client_gets_an_answer_and_its_usage(client_of_alice: Client, play: Play) -> None:
    await sync_to_async(play)(said(120, "Hi there."))

    response = await client_of_alice.ask(user("Hello"))

    body = response.json()
    assert body["choices"][0]["message"] == {"role": "assistant", "content": "Hi there."}
    assert body["choices"][0]["finish_reason"] == "stop"
    assert body["usage"] == {"prompt_tokens": 120, "completion_tokens": 5, "total_tokens": 125}


async def test_a_stream_says_the_same_in_pieces(client_of_alice: Client, play: Play) -> None:
    await sync_to_async(play)(said(120, "Hi there, Alice."))

    chunks = await client_of_alice.stream(user("Hello"))

    assert text_of(chunks) == "Hi there, Alice."
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks][-1] == "stop"


async def test_a_resent_history_goes_on_in_the_same_dialog(client_of_alice: Client, play: Play) -> None:
    read = await sync_to_async(play)(said(120, "Hi."), said(130, "Fine."))
    await client_of_alice.ask(user("Hello"))

    await client_of_alice.ask(user("Hello"), assistant("Hi."), user("How are you?"))

    assert await Dialog.objects.acount() == 1
    assert await Message.objects.acount() == 4
    sent = [(one["role"], one["content"]) for one in read()[1]["messages"]]
    assert sent == [("user", "Hello"), ("assistant", "Hi."), ("user", "How are you?")]
