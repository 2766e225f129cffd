"""A conversation through `/v1`: what a client gets, what is sent for it, and what is stored."""

from __future__ import annotations

import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from dialogs.models import Blob, Dialog, Generation, Message
from dialogs.transcript.writes.marks import lay_down
from health.models import HealthReading
from tests.dialogs.api.conftest import Client, Play, a_tool, assistant, calling, said, text_of, user

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]

PIXEL = "data:image/png;base64," + "iVBORw0KGgo" * 40


@pytest.mark.parametrize(
    ("prompt", "usage"), [(120, {"prompt_tokens": 120, "completion_tokens": 5, "total_tokens": 125}), (None, None)]
)
async def test_a_client_gets_an_answer_and_the_usage_that_was_reported(
    client_of_alice: Client, play: Play, prompt: int | None, usage: dict[str, int] | None
) -> None:
    await sync_to_async(play)(said(prompt, "Hi there."))

    body = (await client_of_alice.ask(user("Hello"))).json()

    assert body["choices"][0]["message"] == {"role": "assistant", "content": "Hi there."}
    assert (body["choices"][0]["finish_reason"], body["usage"]) == ("stop", usage)


async def test_a_stream_says_the_same_in_pieces_and_has_usage_only_where_it_is_asked_for(
    client_of_alice: Client, play: Play
) -> None:
    await sync_to_async(play)(said(120, ["Hi ", "there, ", "Alice."]))

    chunks = await client_of_alice.stream(user("Hello"))
    with_usage = await client_of_alice.stream(user("Good morning"), stream_options={"include_usage": True})

    assert text_of(chunks) == "Hi there, Alice."
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert len({(chunk["id"], chunk["created"], chunk["model"]) for chunk in chunks}) == 1
    assert all(chunk["choices"] for chunk in chunks)
    assert [chunk["usage"]["prompt_tokens"] for chunk in with_usage if not chunk["choices"]] == [120]


async def test_what_the_client_said_is_sent_as_it_was_said(client_of_alice: Client, play: Play) -> None:
    read = await sync_to_async(play)(said(120))

    await client_of_alice.ask(
        {"role": "system", "content": "You are a pirate."}, user("One"), user("Two"), temperature=0.1, max_tokens=50
    )

    sent = read()[0]
    assert [(one["role"], one["content"]) for one in sent["messages"]] == [
        ("system", "You are a pirate."),
        ("user", "One"),
        ("user", "Two"),
    ]
    assert (sent["options"], sent["max_output_tokens"]) == ({"temperature": 0.1}, 50)

    # An agent's instructions come before the client's.
    await client_of_alice.post(
        {"model": "helper", "messages": [{"role": "developer", "content": "Be brief."}, user("Hello")]}
    )

    assert read()[1]["messages"][0]["content"] == "You help.\n\nBe brief."


async def test_images_are_sent_whole_and_kept_apart_from_the_message(client_of_alice: Client, play: Play) -> None:
    read = await sync_to_async(play)(said(120))
    parts = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": PIXEL}}]

    await client_of_alice.ask({"role": "user", "content": parts})

    message = await Message.objects.aget(role="user")
    assert read()[0]["messages"][0]["parts"] == parts
    assert "base64" not in json.dumps(message.parts)
    assert message.content == "What is it?"
    assert (await Blob.objects.aget(content=PIXEL)).sha256 in json.dumps(message.parts)


async def test_a_client_cannot_ask_for_a_kept_text_by_its_hash(client_of_alice: Client, play: Play) -> None:
    read = await sync_to_async(play)(said(120))
    kept = await Blob.objects.acreate(sha256="a" * 64, content="Bob's picture")
    parts = [{"type": "text", "text": "Show it."}, {"type": "file", "file": {"file_data": {"blob": kept.sha256}}}]

    await client_of_alice.ask({"role": "user", "content": parts})

    assert "Bob" not in json.dumps(read()[0])


async def test_tools_run_in_the_client(client_of_alice: Client, play: Play) -> None:
    read = await sync_to_async(play)(calling(120, "weather", '{"city": "Ulm"}'), said(150, "It rains."))
    tools = [a_tool("weather")]

    first = (await client_of_alice.ask(user("Weather?"), tools=tools)).json()["choices"][0]
    call = first["message"]["tool_calls"][0]
    result = {"role": "tool", "tool_call_id": call["id"], "content": "rain"}
    second = await client_of_alice.ask(user("Weather?"), first["message"], result, tools=tools)

    assert first["finish_reason"] == "tool_calls"
    assert call["function"] == {"name": "weather", "arguments": '{"city": "Ulm"}'}
    assert second.json()["choices"][0]["message"]["content"] == "It rains."
    assert [one["role"] for one in read()[1]["messages"]] == ["user", "assistant", "tool"]
    assert await Dialog.objects.acount() == 1


async def test_a_streamed_call_comes_whole_with_its_index(client_of_alice: Client, play: Play) -> None:
    await sync_to_async(play)(calling(120, "weather", '{"city": "Ulm"}'))

    chunks = await client_of_alice.stream(user("Weather?"), tools=[a_tool("weather")])

    calls = [call for chunk in chunks for call in chunk["choices"][0]["delta"].get("tool_calls", ())]
    assert [(call["index"], call["id"], call["function"]["arguments"]) for call in calls] == [
        (0, "c1", '{"city": "Ulm"}')
    ]
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


async def test_reasoning_is_passed_on_and_never_mixed_with_the_answer(client_of_alice: Client, play: Play) -> None:
    await sync_to_async(play)(said(120, "Four.", reasoning=["Two and ", "two."]))

    chunks = await client_of_alice.stream(user("2+2?"))

    thoughts = "".join(chunk["choices"][0]["delta"].get("reasoning_content", "") for chunk in chunks)
    assert (thoughts, text_of(chunks)) == ("Two and two.", "Four.")


@pytest.mark.parametrize("stream", [True, False])
async def test_a_clients_background_tasks_leave_nothing_behind(
    client_of_alice: Client, play: Play, stream: bool
) -> None:
    await sync_to_async(play)(said(120, "A title"))
    content, headers = "Give a title.", {"X-Dominds-Task": "title_generation"}

    answered: Any = (
        text_of(await client_of_alice.stream(user(content), headers=headers))
        if stream
        else (await client_of_alice.ask(user(content), headers=headers)).json()["choices"][0]["message"]["content"]
    )

    assert answered == "A title"
    assert await Dialog.objects.acount() + await HealthReading.objects.acount() == 0


async def test_the_dialog_is_the_keys_owners_and_marked_as_the_clients(client_of_alice: Client, play: Play) -> None:
    await sync_to_async(play)(said(120, "Hi."))

    body = (await client_of_alice.ask(user("Where is the boiler?"))).json()

    dialog = await Dialog.objects.select_related("owner", "client").aget()
    assert (dialog.owner.username, dialog.is_client_driven, dialog.title) == ("alice", True, "Where is the boiler?")
    assert dialog.client.model == "scripted/tiny"
    assert body["dominds"]["dialog"] == str(dialog.pk)
    assert (dialog.is_busy, dialog.answer_due) == (False, False)


async def test_no_prompt_is_ever_added_however_full_it_is(client_of_alice: Client, play: Play) -> None:
    read = await sync_to_async(play)(said(960, "One."), said(970, "Two."))

    first = await client_of_alice.ask(user("A"))
    await client_of_alice.ask(user("A"), assistant("One."), user("B"))

    assert first.json()["dominds"]["level"] == "critical"
    assert [one["content"] for one in read()[1]["messages"]] == ["A", "One.", "B"]
    assert await Generation.objects.acount() == 2


async def test_a_rule_that_a_person_adds_on_its_page_is_told_to_the_model(client_of_alice: Client, play: Play) -> None:
    read = await sync_to_async(play)(said(20, "Hello."), said(30, "Well."))
    await client_of_alice.ask(user("Hi"))
    dialog = await Dialog.objects.aget()

    await sync_to_async(lay_down)(dialog=dialog, text="Never push to main.")
    await client_of_alice.ask(user("Hi"), assistant("Hello."), user("Go on."))

    first, second = read()
    assert "Never push to main." not in str(first)
    assert second["messages"][0]["role"] == "system"
    assert "Never push to main." in second["messages"][0]["content"]
