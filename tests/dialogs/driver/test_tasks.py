"""What a worker does with a task that it has taken from the queue."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db.backends.signals import connection_created
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dialogs.common import broadcast
from dialogs.common.threads import close_threads
from dialogs.models import Dialog, Message
from dialogs.tasks import drive
from tests.dialogs.driver.conftest import USAGE, Play, ask
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
    assert 0 < len(opened) < 5  # where each call opened one: 9 on PostgreSQL; SQLite in memory never closes its own


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
