"""What a worker does with a task that it has taken from the queue."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Thread, current_thread

import pytest
from asgiref.sync import SyncToAsync
from celery.app.task import Context
from celery.worker.state import active_requests
from django.conf import LazySettings
from django.db.backends.signals import connection_created
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dialogs import sweeper, tasks
from dialogs.agents.tools.base import OutsideTool, schema
from dialogs.common import broadcast, schedule
from dialogs.common.threads import close_threads, in_db
from dialogs.driver import generate, run_tools
from dialogs.driver.guarding import LoadedDialog
from dialogs.driver.streaming import Call
from dialogs.models import LLM, Dialog, Generation, McpServer, Message, ToolCall
from dialogs.providers.base import ProviderError
from dialogs.tasks import drive
from dialogs.turns.writes.lease import Claim
from dialogs.turns.writes.messages import post_message
from tests.dialogs.driver.conftest import USAGE, Play, a_call, ask, said
from tests.standins.serving import serving

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def closed_threads() -> Iterator[None]:
    """Threads that keep their connections would keep the test's database."""
    yield
    close_threads()


def as_a_worker(dialog: Dialog) -> None:
    """On a thread of its own, which has no connection yet."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(drive, str(dialog.pk)).result(timeout=60)


def test_a_slice_opens_no_connection_for_each_thing_it_does(dialog: Dialog, play: Play) -> None:
    play({"text": ["Hi ", "there."], "usage": USAGE})
    ask(dialog)
    opened: list[object] = []
    connection_created.connect(lambda **about: opened.append(about["connection"]), weak=False, dispatch_uid="opened")

    as_a_worker(dialog)

    connection_created.disconnect(dispatch_uid="opened")
    assert [message.content for message in dialog.messages.all()] == ["Hello", "Hi there."]
    # Where each call opened one it was 9 on PostgreSQL. SQLite in memory never closes one: earlier tests may leave it.
    assert len(opened) < 5


def test_a_turn_asks_over_the_connection_of_the_turn_before_it(dialog: Dialog) -> None:
    ports = []
    answer = {"choices": [{"index": 0, "delta": {"content": "Hi."}, "finish_reason": "stop"}]}

    async def answered(request: Request) -> Response:
        assert request.client
        ports.append(request.client.port)
        return Response(f"data: {json.dumps(answer)}\n\ndata: [DONE]\n\n", media_type="text/event-stream")

    with serving(Starlette(routes=[Route("/v1/chat/completions", answered, methods=["POST"])])) as url:
        dialog.llm.provider.kind, dialog.llm.provider.base_url = "openai", f"{url}/v1"
        dialog.llm.provider.save()
        for question in ("Hello", "And again?"):
            ask(dialog, question)
            as_a_worker(dialog)

    assert [message.content for message in dialog.messages.filter(role="assistant")] == ["Hi.", "Hi."]
    assert len(ports) > 1
    assert len(set(ports)) == 1


def test_a_turn_needs_no_thread_whose_connection_nobody_looks_after(
    dialog: Dialog, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Django's own async queries share one thread, whose connection stays broken once its server went away."""

    async def drop(_arguments: object, _key: str) -> str:
        await in_db(post_message)(dialog=dialog, content="WAIT!")
        return "dropped"

    tools = [OutsideTool(name=name, description="", parameters=schema(), perform=drop) for name in ("logs", "people")]
    monkeypatch.setattr(run_tools, "tools_for", lambda _dialog: tools)
    monkeypatch.setattr(SyncToAsync, "single_thread_executor", ThreadPoolExecutor(1, thread_name_prefix="shared"))
    calls = [a_call("logs", call_id="1"), a_call("people", call_id="2")]
    play(said(10, "", tool_calls=calls, finish="tool_calls"), said(10, "Done."))
    ask(dialog, "Tidy the tables.")
    opened: list[str] = []
    connection_created.connect(lambda **_about: opened.append(current_thread().name), weak=False, dispatch_uid="opened")

    as_a_worker(dialog)
    as_a_worker(dialog)

    connection_created.disconnect(dispatch_uid="opened")
    assert list(ToolCall.objects.values_list("status", flat=True)) == ["done", "failed"]
    assert [name for name in opened if name.startswith("shared")] == []


def test_what_would_end_the_program_ends_one_turn_only(
    dialog: Dialog, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def leave(_dialog_id: object) -> None:
        raise SystemExit("A library gives up.")

    with monkeypatch.context() as patched:
        patched.setattr(tasks, "run_drive", leave)
        with pytest.raises(SystemExit):
            as_a_worker(dialog)

    play({"text": "Hi.", "usage": USAGE})
    ask(dialog)
    as_a_worker(dialog)

    assert [message.content for message in dialog.messages.all()] == ["Hello", "Hi."]


def test_a_worker_that_is_told_to_stop_hands_its_turns_over(dialog: Dialog, play: Play, settings: LazySettings) -> None:
    """Their leases need not run out first, and the worker did not die over them."""
    settings.DOMINDS_LEASE_SECONDS = 600
    play({"text": ["word "] * 300, "delay": 0.1, "usage": USAGE})
    ask(dialog)
    with ThreadPoolExecutor(1) as pool:
        driving = pool.submit(drive, str(dialog.pk))
        while not Generation.objects.exclude(partial_text="").exists():
            time.sleep(0.05)

        tasks.hand_over()
        driving.result(timeout=10)

    play({"text": "Hi.", "usage": USAGE})
    as_a_worker(dialog)

    (first, kept), (second, _) = Generation.objects.order_by("pk").values_list("status", "partial_text")
    assert (first, second) == ("interrupted", "finished")
    assert kept.startswith("word word")
    assert [message.content for message in dialog.messages.all()] == ["Hello", "Hi."]
    dialog.refresh_from_db()
    assert dialog.deaths == 0


def test_a_worker_that_is_told_to_stop_ends_as_soon_as_no_task_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    task = Context(id="1")
    active_requests.add(task)
    ending = Thread(target=tasks.end_when_idle)

    ending.start()
    ending.join(5 * tasks.LOOK_EVERY_SECONDS)
    ended_before = list(ended)
    active_requests.discard(task)
    ending.join()

    assert (ended_before, ended) == ([], [0])


def test_while_the_broker_is_away_the_sweeper_lets_what_is_due_be_done(
    dialog: Dialog, play: Play, monkeypatch: pytest.MonkeyPatch, settings: LazySettings
) -> None:
    settings.DOMINDS_TURN_THREADS = 1
    monkeypatch.setattr(schedule, "_queued", lambda *_about, **_more: False)
    play({"text": "Hi.", "usage": USAGE})
    ask(dialog)

    sweeper.sweep_turns(tasks.drive_beside)
    is_full = not tasks.drive_beside(dialog.pk)
    while tasks._beside:
        time.sleep(0.01)

    assert is_full
    assert [message.content for message in dialog.messages.all()] == ["Hello", "Hi."]


def test_after_servers_were_asked_for_tools_the_window_is_made_fresh_for_the_dialog_that_is_sent(
    dialog: Dialog, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    play({"text": "Hi.", "usage": USAGE})
    ask(dialog)
    McpServer.objects.create(name="lab", command="no-such-program").agents.add(dialog.agent)
    fresh, sent = [], []
    refusal, begin = generate.refusal, generate.begin

    async def made_fresh(llm: LLM) -> ProviderError | None:
        fresh.append(llm)
        return await refusal(llm)

    def begun(claim: Claim, loaded: LoadedDialog, *, attempt: int) -> Call:
        sent.append(loaded.dialog.llm)
        return begin(claim, loaded, attempt=attempt)

    monkeypatch.setattr(generate, "refusal", made_fresh)
    monkeypatch.setattr(generate, "begin", begun)
    as_a_worker(dialog)

    assert McpServer.objects.get().problem  # it was asked
    assert len(sent) == 1
    assert fresh[0] is sent[0]


def test_browsers_are_told_of_the_answer_before_the_slice_ends(
    dialog: Dialog, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    play({"text": "Hi.", "usage": USAGE})
    ask(dialog)
    answered: list[bool] = []

    async def sent(*_news: object) -> None:
        answered.append(await Message.objects.filter(content="Hi.").aexists())

    monkeypatch.setattr(broadcast, "_send", sent)
    as_a_worker(dialog)

    assert answered[-1:] == [True]
