"""What goes wrong has OpenAI's shape: a status before the first byte, an event in the stream after it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.utils import timezone

from dialogs.api import endpoints, responding, turn
from dialogs.api.writes.client_turns import take_up
from dialogs.driver import run
from dialogs.driver.run import drive
from dialogs.models import Agent, ApiKey, Dialog, Generation, Message
from dialogs.pages.writes import trash_dialog
from dialogs.transcript.writes.dialog_row import erase_dialog
from dialogs.turns.reads.turns import due_dialogs
from dialogs.turns.writes.messages import request_stop
from health.models import ContextEvent
from tests.dialogs.api.conftest import Client, Play, a_tool, assistant, calling, said, user
from tests.dialogs.full_database import LARGE, full_database

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
Status = Generation.Status
SECRET = "/srv/secret/path"
INTERNAL = {
    "message": "Dominds failed while it was answering. Its log has the details.",
    "type": "api_error",
    "param": None,
    "code": "internal_error",
}


def broken(*_args: Any, **_kwargs: Any) -> Any:
    raise RuntimeError(f"Nobody thought of {SECRET}")


def failing(code: str, **details: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": "It went wrong.", **details}}


WRONG = "It went wrong."
NO_PICTURES = (
    "The model or its server reads no images, sound or files. Leave them out, or choose a model that reads them. "
    f"Its own words: {WRONG}"
)
NOT_YOUR_KEY = f"The provider refused the key that Dominds has for it: {WRONG}"


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize(
    ("failure", "status", "code", "message"),
    [
        ("context_overflow", 400, "context_length_exceeded", WRONG),
        ("request_refused", 400, "request_refused", WRONG),
        ("model_not_found", 404, "model_not_found", WRONG),
        ("rate_limited", 429, "rate_limit_exceeded", WRONG),
        ("provider_unreachable", 503, "provider_unreachable", WRONG),
        ("provider_failed", 502, "provider_failed", WRONG),
        # What to do is told.
        ("media_refused", 400, "media_refused", NO_PICTURES),
        # It is not the client's own key which was refused.
        (
            "authentication_refused",
            502,
            "authentication_refused",
            NOT_YOUR_KEY,
        ),
    ],
)
async def test_a_failure_before_the_first_word_is_a_status_and_it_is_the_client_that_tries_again(
    client_of_alice: Client, play: Play, failure: str, status: int, code: str, message: str, stream: bool
) -> None:
    # Where there is a history, it is compacted after an overflow.
    is_overflow = failure == "context_overflow"
    history = [user("Well?")] if is_overflow else [user("Hello"), assistant("Hi."), user("Well?")]
    pause = {} if is_overflow else {"retry_after": 7}
    read = await sync_to_async(play)(failing(failure, **pause), said(120, "Fine."))

    response = await client_of_alice.ask(*history, stream=stream)

    assert len(read()) == 1
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["message"]) == (status, code, message)
    assert set(error) == {"message", "type", "param", "code"}
    assert is_overflow or response.headers["Retry-After"] == "7"

    again = await client_of_alice.ask(*history)

    assert again.json()["choices"][0]["message"]["content"] == "Fine."
    assert is_overflow or await Dialog.objects.acount() == 1


async def test_a_failure_in_the_stream_ends_it_with_an_error(client_of_alice: Client, play: Play) -> None:
    await sync_to_async(play)({"text": ["One, ", "two"], **failing("provider_failed")})

    lines = await client_of_alice.lines(user("Count"))

    assert json.loads(lines[-1])["error"]["code"] == "provider_failed"
    assert "[DONE]" not in lines
    failed = await Generation.objects.aget()
    assert (failed.status, failed.partial_text) == (Status.FAILED, "One, two")


@pytest.mark.parametrize(("where", "stream"), [("read", False), ("read", True), ("_whole", False)])
async def test_what_nobody_foresaw_is_an_error_without_any_detail(
    where: str,
    stream: bool,
    client_of_alice: Client,
    play: Play,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await sync_to_async(play)(said(120, "Hi."))
    monkeypatch.setattr(endpoints, where, broken)

    response = await client_of_alice.ask(user("Hello"), stream=stream)

    assert (response.status_code, response["Content-Type"]) == (500, "application/json")
    assert response.json()["error"] == INTERNAL
    assert SECRET not in response.content.decode()
    (record,) = [record for record in caplog.records if record.name == "dialogs.api.endpoints"]
    assert record.getMessage() == "POST /v1/chat/completions failed"
    assert record.exc_info is not None
    assert SECRET in str(record.exc_info[1])


async def test_what_nobody_foresaw_in_the_stream_ends_it_with_such_an_error(
    client_of_alice: Client, play: Play, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await sync_to_async(play)(said(120, "Hi."))
    monkeypatch.setattr(responding, "_ending", broken)

    lines = await client_of_alice.lines(user("Hello"))

    assert json.loads(lines[-1])["error"] == INTERNAL
    assert SECRET not in "".join(lines)
    assert SECRET in caplog.text


async def test_a_fault_outside_the_generation_is_an_error_and_the_next_request_is_answered(
    client_of_alice: Client, play: Play, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await sync_to_async(play)(said(120, "Fine."))
    history = [user("Hello"), assistant("Hi."), user("Well?")]
    with monkeypatch.context() as patched:
        patched.setattr(run, "decide", broken)
        response = await client_of_alice.ask(*history)
    assert (response.status_code, response.json()["error"]["code"]) == (500, "internal_error")
    dialog = await Dialog.objects.aget()
    assert (dialog.answer_due, dialog.is_busy, dialog.lease_until) == (False, False, None)
    assert (await ContextEvent.objects.aget()).code == "SLICE_FAILED"
    assert SECRET in caplog.text

    again = await client_of_alice.ask(*history)

    assert again.json()["choices"][0]["message"]["content"] == "Fine."
    assert await Dialog.objects.acount() == 1, "no copy beside a dialog that nobody drives"


DEEP = "[" * 100_000


async def test_a_full_disk_is_said_and_once_there_is_room_the_same_request_is_answered(
    client_of_alice: Client, play: Play
) -> None:
    await sync_to_async(play)(said(120, "Hi."))

    with full_database():
        refused = await client_of_alice.ask(user(LARGE))
    response = await client_of_alice.ask(user(LARGE))

    error = refused.json()["error"]
    assert (refused.status_code, error["code"], error["type"]) == (507, "storage_full", "api_error")
    assert "full" in error["message"]
    assert response.json()["choices"][0]["message"]["content"] == "Hi."
    assert await Dialog.objects.acount() == 1


async def test_a_history_with_arguments_nested_without_end_is_answered(client_of_alice: Client, play: Play) -> None:
    await sync_to_async(play)(said(120, "Fine."))
    called = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": DEEP}}
    history = [user("Look"), {"role": "assistant", "content": None, "tool_calls": [called]}]
    history += [{"role": "tool", "tool_call_id": "c1", "content": "Nothing."}]

    for _time in range(2):
        response = await client_of_alice.ask(*history, tools=[a_tool("look")])
        assert response.json()["choices"][0]["message"]["content"] == "Fine."


@pytest.mark.parametrize("name", ["look", "recall"])
async def test_a_model_that_nests_arguments_without_end_does_not_end_the_conversation(
    client_of_alice: Client, play: Play, name: str
) -> None:
    await sync_to_async(play)(calling(120, name, DEEP), said(120, "Fine."))

    first = await client_of_alice.ask(user("Look"), tools=[a_tool("look")])
    assert first.status_code == 200
    message = first.json()["choices"][0]["message"]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "No."} for call in message.get("tool_calls", ())]

    second = await client_of_alice.ask(user("Look"), message, *results, user("Go on"), tools=[a_tool("look")])

    assert second.json()["choices"][0]["message"]["content"] == "Fine."


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_an_answer_whose_conversation_is_erased_meanwhile_is_no_failure_to_be_tried_again(
    client_of_alice: Client, play: Play, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    await sync_to_async(play)(said(120, [f"{number} " for number in range(200)], delay=0.05))
    asking = asyncio.create_task(client_of_alice.lines(user("Count")) if stream else client_of_alice.ask(user("Count")))
    while not await Generation.objects.aexists():  # noqa: ASYNC110  a row is looked for
        await asyncio.sleep(0.05)

    dialog = await Dialog.objects.aget()
    await sync_to_async(trash_dialog)(dialog=dialog)
    await sync_to_async(erase_dialog)(dialog=dialog)

    came = await asking
    error = json.loads(came[-1] if stream else came.content)["error"]
    assert (error["code"], error["type"]) == ("conversation_erased", "invalid_request_error")
    assert stream or came.status_code == 404
    assert "A client's turn failed" not in caplog.text


@pytest.mark.parametrize(
    ("what", "status", "code"),
    [(ApiKey, 401, "invalid_api_key"), (User, 401, "invalid_api_key"), (Agent, 404, "model_not_found")],
)
async def test_what_is_deleted_between_the_check_and_the_storing_is_said(
    client_of_alice: Client, play: Play, monkeypatch: pytest.MonkeyPatch, what: Any, status: int, code: str
) -> None:
    await sync_to_async(play)(said(120, "Hi."))

    def deleted_first(**asked: Any) -> Any:
        what.objects.all().delete()
        return take_up(**asked)

    monkeypatch.setattr(turn, "take_up", deleted_first)

    refused = await client_of_alice.ask(user("Hello"))

    assert (refused.status_code, refused.json()["error"]["code"]) == (status, code)
    assert not await Dialog.objects.aexists()


@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_that_a_person_stops_does_not_end_as_if_it_were_whole(
    client_of_alice: Client, play: Play, stream: bool
) -> None:
    await sync_to_async(play)(said(120, [f"{number} " for number in range(200)], delay=0.05))
    asking = asyncio.create_task(client_of_alice.lines(user("Count")) if stream else client_of_alice.ask(user("Count")))
    while not await Generation.objects.exclude(partial_text="").aexists():  # noqa: ASYNC110  a row is looked for
        await asyncio.sleep(0.05)

    await sync_to_async(request_stop)(dialog=await Dialog.objects.aget())

    came = await asking
    error = json.loads(came[-1] if stream else came.content)["error"]
    assert (error["code"], error["type"]) == ("answer_stopped", "invalid_request_error")
    # No status that OpenAI's clients try again by themselves.
    assert stream or came.status_code == 400
    assert (await Generation.objects.select_related("message").aget()).message.content.startswith("0 1 2")


@pytest.mark.parametrize("ended", [{"revoked_at": timezone.now()}, {"expires_at": timezone.now()}])
async def test_an_answer_under_way_comes_whole_though_its_key_ends_and_the_next_is_refused(
    client_of_alice: Client, play: Play, ended: dict[str, Any]
) -> None:
    await sync_to_async(play)(said(120, ["One ", "two ", "three."], delay=0.3))
    asking = asyncio.create_task(client_of_alice.ask(user("Count")))
    while not await Generation.objects.aexists():  # noqa: ASYNC110  a row is looked for
        await asyncio.sleep(0.05)

    await ApiKey.objects.aupdate(**ended)

    assert (await asking).json()["choices"][0]["message"]["content"] == "One two three."
    assert (await client_of_alice.ask(user("Again"))).status_code == 401


async def test_a_client_that_waits_for_the_whole_and_leaves_stops_the_model_too(
    client_of_alice: Client, play: Play
) -> None:
    await sync_to_async(play)(said(120, [f"{number} " for number in range(200)], delay=0.05))
    asking = asyncio.create_task(client_of_alice.ask(user("Count")))
    while not await Generation.objects.aexists():  # noqa: ASYNC110  a row is looked for
        await asyncio.sleep(0.05)

    asking.cancel()

    assert (await _ended()).status == Status.STOPPED


async def test_a_client_that_leaves_stops_the_model_and_what_came_is_kept_and_gone_on_with(
    client_of_alice: Client, play: Play
) -> None:
    await sync_to_async(play)(said(120, [f"{number} " for number in range(200)], delay=0.05), said(120, "201"))
    heard: asyncio.Queue[bytes] = asyncio.Queue()

    async def listen() -> None:
        response = await client_of_alice.ask(user("Count"), stream=True)
        async for piece in response.streaming_content:
            heard.put_nowait(piece)

    listening = asyncio.create_task(listen())
    while b'"content":"2 "' not in await heard.get():
        pass
    # As the server does when the connection is gone.
    listening.cancel()

    stopped = await _ended()
    assert stopped.status == Status.STOPPED
    assert stopped.message.content.startswith("0 1 2")
    dialog = await Dialog.objects.aget()
    assert (dialog.answer_due, dialog.is_busy) == (False, False)

    await client_of_alice.ask(user("Count"), assistant(stopped.message.content.strip()), user("Go on."))

    said_by = [one.role async for one in Message.objects.order_by("seq")]
    assert said_by == ["user", "assistant", "user", "assistant"]


async def _ended() -> Generation:
    for _look in range(100):
        # What is asked ahead is heard before it is stored.
        row = await Generation.objects.select_related("message").afirst()
        if row is not None and row.status != Status.RUNNING and not (await Dialog.objects.aget()).is_busy:
            return row
        await asyncio.sleep(0.05)
    raise AssertionError("The generation did not end.")


async def test_a_turn_whose_process_died_is_interrupted_and_never_resumed(client_of_alice: Client, play: Play) -> None:
    read = await sync_to_async(play)(said(120, "Hi."))
    await client_of_alice.ask(user("Hello"))
    # As a killed web process leaves it.
    await Dialog.objects.aupdate(wake_seq=9, answer_due=True, lease_until=None)
    await Generation.objects.aupdate(status=Status.RUNNING, message=None)
    dialog = await Dialog.objects.aget()
    assert await sync_to_async(due_dialogs)() == [dialog.pk]

    await drive(dialog.pk)

    dialog = await Dialog.objects.aget()
    assert (dialog.answer_due, dialog.is_busy) == (False, False)
    assert (await Generation.objects.aget()).status == Status.INTERRUPTED
    assert len(read()) == 1
