"""Calls to a real MCP server that fails for a while: what is made again, what never, and what is seen meanwhile."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from channels.db import database_sync_to_async
from django.db import OperationalError
from django.utils import timezone

from dialogs.agents.tools.base import OutsideTool, TransientError, schema
from dialogs.agents.tools.mcp_servers import ask_all, call_tool, record_all
from dialogs.driver import run_tools
from dialogs.driver.retries import NOT_KNOWN, with_retries
from dialogs.driver.run import drive
from dialogs.driver.writes import rounds
from dialogs.models import Agent, Dialog, McpServer, Message, Question, ToolCall
from dialogs.transcript.reads.tool_calls import call_rows
from dialogs.turns.writes import lease
from dialogs.turns.writes.messages import answer_question, request_stop
from health.compaction.config import ContextConfig, RetryPolicy
from health.compaction.terms.configuration import dump
from health.models import ContextSettings
from tests.builders import a_call, an_answer
from tests.dialogs.agents.tools.moody_server import Mood, moody_server
from tests.dialogs.driver.conftest import Play, ask, ask_and_drive, calling, drive_until_idle, said

pytestmark = pytest.mark.django_db(transaction=True)
AT_ONCE = RetryPolicy(backoff_base_seconds=0)
QUESTION = json.dumps({"question": "Which box?"})


@pytest.fixture
def mood() -> Iterator[Mood]:
    with moody_server() as found:
        yield found


@pytest.fixture
def server(agent: Agent, mood: Mood) -> McpServer:
    """The agent's, asked already what it has; failures are tried again at once."""
    config = ContextConfig(retry_default=AT_ONCE, retry_per_tool=(("askQuestion", AT_ONCE),))
    ContextSettings.objects.update_or_create(pk=1, defaults={"values": dump(config)})
    server = McpServer.objects.create(name="shop", transport="http", url=mood.url, timeout_seconds=20)
    agent.mcp_servers.add(server)
    record_all([server], async_to_sync(ask_all)([server]))
    return server


def made(dialog: Dialog, play: Play, tool: str) -> ToolCall:
    """The call of this tool that the agent has made."""
    play(calling(10, f"shop__{tool}"), said(10))
    ask_and_drive(dialog)
    return ToolCall.objects.select_related("result_message").latest("id")


def result(call: ToolCall) -> str:
    assert call.result_message is not None
    return call.result_message.content


def test_a_busy_server_is_asked_again_under_the_same_key(
    dialog: Dialog, play: Play, mood: Mood, server: McpServer
) -> None:
    mood.calls = 2

    call = made(dialog, play, "look")

    assert (call.status, result(call)) == ("done", "look: done.")
    assert (call.attempt, call.most_attempts, call.retry_at) == (3, 3, None)
    assert len(mood.asked) == 3
    assert len(set(mood.asked)) == 1
    assert mood.done == [("look", mood.asked[0])]

    made(dialog, play, "look")

    # Another call has another key.
    assert len(set(mood.asked)) == 2
    assert "" not in mood.asked


@pytest.mark.parametrize(
    ("tool", "trouble", "status", "done"),
    [
        ("put", {"losing": 1}, "done", ["put", "put"]),
        ("buy", {"losing": 1}, "failed", ["buy"]),
        # Its first question is in the new way of MCP, the second in the old one.
        ("buy", {"opening": 2}, "done", ["buy"]),
    ],
    ids=["what-may-be-done-twice-is", "nothing-is-bought-twice", "what-was-never-asked-for-is-asked-for-again"],
)
def test_what_is_made_again(
    dialog: Dialog, play: Play, mood: Mood, server: McpServer, tool: str, trouble: dict[str, int], status: str,
    done: list[str],
) -> None:  # fmt: skip
    for name, times in trouble.items():
        setattr(mood, name, times)

    call = made(dialog, play, tool)

    assert call.status == status
    assert result(call).endswith(NOT_KNOWN) is (status == "failed")
    assert call.attempt == (1 if status == "failed" else 2)
    assert [made for made, _key in mood.done] == done
    assert len(set(mood.done)) == 1


def test_the_servers_own_wish_is_waited_for(mood: Mood, server: McpServer) -> None:
    mood.calls, mood.retry_after = 1, "7"
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def on_wait(_attempt: int, _seconds: float) -> None:
        pass

    answer = asyncio.run(
        with_retries(
            lambda _attempt: call_tool(server, "look", {}, key="k"),
            policy=RetryPolicy(),
            is_safe=True,
            on_wait=on_wait,
            sleep=sleep,
            chance=lambda: 0.0,
        )
    )

    assert (answer, slept) == ("look: done.", [7.0])


# --- Waiting ----------------------------------------------------------------------------------


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool whose server wishes to be left alone for most of a minute."""

    async def perform(_arguments: Any, _key: str) -> str:
        raise TransientError("Busy.", retry_after=50)

    tool = OutsideTool(name="look", description="", parameters=schema(), perform=perform, idempotent=True)
    monkeypatch.setattr(run_tools, "tools_for", lambda _dialog: (tool,))


async def until_waiting() -> ToolCall:
    # It is a row: there is no event to wait for.
    while not (call := await ToolCall.objects.exclude(retry_at=None).afirst()):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    return call


def test_waiting_is_seen_and_a_stop_ends_it_at_once(dialog: Dialog, play: Play, away: None) -> None:
    play(calling(10, "look"))
    ask(dialog)
    seen: list[tuple[bool, int, int]] = []

    async def look_and_stop() -> None:
        call = await until_waiting()
        [row] = (await database_sync_to_async(call_rows)([call.message_id]))[call.message_id]
        seen.append((row.is_tried_again, row.call.attempt, row.call.most_attempts))
        await database_sync_to_async(request_stop)(dialog=dialog)

    drive_until_idle(dialog, beside=look_and_stop)

    assert seen == [(True, 2, 3)]
    assert (dialog.answer_due, ToolCall.objects.get().status) == (False, "withdrawn")


# --- When a worker dies or the database is away -----------------------------------------------


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    """When a tool was asked whose server is away for good."""
    found: list[datetime] = []

    async def perform(_arguments: Any, _key: str) -> str:
        found.append(timezone.now())
        raise TransientError("Away.")

    tool = OutsideTool(name="look", description="", parameters=schema(), perform=perform, idempotent=True)
    monkeypatch.setattr(run_tools, "tools_for", lambda _dialog: (tool,))
    return found


def its_worker_dies(dialog: Dialog) -> None:
    """The lease runs out, and another worker may drive the dialog."""
    Dialog.objects.filter(pk=dialog.pk).update(lease_until=timezone.now() - timedelta(seconds=1))


def a_call_waits_a_second(dialog: Dialog, play: Play, *, attempt: int) -> datetime:
    """For its attempt of that number, of three. Returns when that is due."""
    play(calling(10, "look"), said(10))
    ask(dialog)
    async_to_sync(drive)(dialog.pk)
    claim, call = lease.claim(dialog.pk), ToolCall.objects.get()
    assert claim
    rounds.start_call(claim, call, idempotent=True)
    rounds.await_retry(claim, call, attempt=attempt, most=3, seconds=1)
    assert call.retry_at
    return call.retry_at


def test_a_call_that_waits_when_its_worker_dies_is_made_anew_when_its_time_comes(
    dialog: Dialog, play: Play, server: McpServer, looked: list[datetime]
) -> None:
    due = a_call_waits_a_second(dialog, play, attempt=2)
    its_worker_dies(dialog)

    drive_until_idle(dialog)

    call = ToolCall.objects.select_related("result_message").get()
    assert looked[0] >= due - timedelta(milliseconds=50)
    assert (len(looked), call.status) == (2, "failed")
    assert result(call).endswith("It was tried 3 times.")


def test_a_call_that_waits_since_before_the_clock_went_back_is_made_at_once(
    dialog: Dialog, play: Play, server: McpServer, looked: list[datetime]
) -> None:
    a_call_waits_a_second(dialog, play, attempt=3)
    ahead = timezone.now() + timedelta(hours=1)
    ToolCall.objects.update(started_at=ahead, retry_at=ahead + timedelta(seconds=1))
    its_worker_dies(dialog)

    drive_until_idle(dialog)

    assert (len(looked), ToolCall.objects.get().status) == (1, "failed")


@pytest.mark.parametrize("fault", [OperationalError("database is locked"), lease.LeaseLost()])
def test_what_cannot_be_recorded_now_is_left_to_who_drives_next(
    fault: Exception,
    dialog: Dialog,
    play: Play,
    server: McpServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    start, faults = rounds.start_call, [fault]

    def start_if_it_can_be(*args: Any, **kwargs: Any) -> None:
        if faults:
            raise faults.pop()
        start(*args, **kwargs)

    monkeypatch.setattr(rounds, "start_call", start_if_it_can_be)
    play(calling(10, "shop__look"), said(10))
    ask(dialog)

    with suppress(ExceptionGroup):
        for _slice in ("answer", "call"):
            async_to_sync(drive)(dialog.pk)
    assert ToolCall.objects.get().status == "pending"
    its_worker_dies(dialog)
    drive_until_idle(dialog)

    assert ToolCall.objects.get().status == "done"
    assert "Tool shop__look failed" not in caplog.text


# --- Questions --------------------------------------------------------------------------------


@pytest.fixture
def lost_commits(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """So many times the question is stored, and then the database is gone before it says so."""
    store = rounds.ask_person

    def lose(times: int) -> None:
        left = [True] * times

        def stored_but_not_said(*args: Any, **kwargs: Any) -> None:
            store(*args, **kwargs)
            if left:
                left.pop()
                raise OperationalError("server closed the connection unexpectedly")

        monkeypatch.setattr(rounds, "ask_person", stored_but_not_said)

    return lose


def test_a_question_that_is_delivered_again_is_asked_once(
    dialog: Dialog, play: Play, server: McpServer, lost_commits: Callable[[int], None]
) -> None:
    lost_commits(2)
    play(calling(10, "ask_human", QUESTION), said(10, "Thanks."))

    ask_and_drive(dialog)
    question = Question.objects.get()
    assert (question.text, question.status, ToolCall.objects.get().status) == ("Which box?", "pending", "waiting")

    answer_question(dialog=dialog, question_id=question.pk, answer="The red one")
    drive_until_idle(dialog)
    assert Question.objects.get().status == "answered"
    assert Message.objects.filter(content="Thanks.").count() == 1


def test_a_question_has_the_tries_that_the_settings_give_to_questions(
    dialog: Dialog, play: Play, lost_commits: Callable[[int], None], caplog: pytest.LogCaptureFixture
) -> None:
    once, four = RetryPolicy(max_attempts=1), RetryPolicy(max_attempts=4, backoff_base_seconds=0)
    config = ContextConfig(retry_default=once, retry_per_tool=(("askQuestion", four),))
    ContextSettings.objects.update_or_create(pk=1, defaults={"values": dump(config)})
    lost_commits(3)
    play(calling(10, "ask_human", QUESTION), said(10, "Thanks."))

    ask_and_drive(dialog)

    assert Question.objects.get().status == "pending"
    assert ToolCall.objects.get().status == "waiting"
    tries = [record for record in caplog.records if record.getMessage().startswith("Question of call")]
    assert len(tries) == 3, "a slice that fails would deliver it anew, with tries of its own"


def test_an_answered_question_stays_answered_when_it_is_delivered_again(dialog: Dialog) -> None:
    ask(dialog)
    call = a_call(an_answer(dialog), name="ask_human")
    claim = lease.Claim(dialog.pk, dialog.lease_token, dialog.wake_seq)
    rounds.ask_person(claim, call, text="Which box?", choices=[])
    answer_question(dialog=dialog, question_id=Question.objects.get().pk, answer="The red one")

    rounds.ask_person(claim, ToolCall.objects.get(pk=call.pk), text="Which box?", choices=[])

    call.refresh_from_db()
    assert (Question.objects.get().answer, call.status) == ("The red one", "done")
