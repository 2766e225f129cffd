"""The plan's three error codes as the driver comes to them: what follows from each, and what is recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from asgiref.sync import async_to_sync
from django.test import Client
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dialogs.driver.run import drive
from dialogs.models import LLM, Agent, Dialog, Generation, Provider
from health.compaction.config import ContextConfig, How
from health.compaction.terms.configuration import dump
from health.models import CompactionRun, ContextEvent, ContextSettings
from tests.dialogs.compacting_builders import a_history, estimated, guard, long_text
from tests.dialogs.driver.conftest import Play, ask, ask_and_drive, drive_until_idle, said
from tests.dialogs.pages.views.pages import page
from tests.standins.compatible import CompatibleStandin
from tests.standins.serving import serving

pytestmark = pytest.mark.django_db(transaction=True)
Status = CompactionRun.Status
TOO_LONG = "This model's maximum context length is 2048 tokens. However, your messages resulted in 2713 tokens."
ANSWER = {"choices": [{"index": 0, "delta": {"content": "Done."}, "finish_reason": "stop"}]}


class ShortOfRoom:
    """A server that speaks OpenAI's protocol, and takes no prompt as long as the first one."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    async def answer(self, request: Request) -> Response:
        self.sizes.append(len(json.dumps((await request.json())["messages"])))
        if self.sizes[-1] >= self.sizes[0]:
            error = {"message": TOO_LONG, "type": "invalid_request_error", "code": "context_length_exceeded"}
            return JSONResponse({"error": error}, status_code=400)
        return Response(f"data: {json.dumps(ANSWER)}\n\ndata: [DONE]\n\n", media_type="text/event-stream")


@pytest.fixture
def short_of_room() -> Iterator[tuple[ShortOfRoom, str]]:
    server = ShortOfRoom()
    with serving(Starlette(routes=[Route("/v1/chat/completions", server.answer, methods=["POST"])])) as url:
        yield server, f"{url}/v1"


def codes(dialog: Dialog) -> list[str]:
    return list(ContextEvent.objects.filter(dialog=dialog).order_by("pk").values_list("code", flat=True))


def test_a_prompt_that_a_server_refuses_as_too_long_is_compacted_and_sent_again(
    dialog: Dialog, short_of_room: tuple[ShortOfRoom, str]
) -> None:
    server, url = short_of_room
    dialog.llm.provider.kind, dialog.llm.provider.base_url = "openai", url
    dialog.llm.provider.save()
    guard(dialog)
    a_history(dialog, pairs=7)

    ask_and_drive(dialog)

    run = CompactionRun.objects.get()
    assert (run.status, run.trigger) == (Status.APPLIED, "overflow")
    assert len(server.sizes) == 2
    assert dialog.current_leaf is not None
    assert dialog.current_leaf.content == "Done."
    assert codes(dialog)[:2] == ["WINDOW_LEARNED", "PROVIDER_OVERFLOW"]


def test_where_no_strategy_suffices_recovery_is_forced_and_both_are_recorded(dialog: Dialog, play: Play) -> None:
    config = ContextConfig(how=How.CHAIN, chain_order=("discard_low_rel",))
    ContextSettings.objects.update_or_create(pk=1, defaults={"values": dump(config)})
    guard(dialog)
    a_history(dialog, pairs=4)
    requests = play(said(None))

    ask_and_drive(dialog, long_text(5, sentences=142))

    run = CompactionRun.objects.get()
    assert (run.status, run.recovered) == (Status.APPLIED, "fresh_start")
    assert [code for code in codes(dialog) if code in ("BREAKER_FAILED", "RECOVERY_TRIGGERED")] == [
        "BREAKER_FAILED",
        "RECOVERY_TRIGGERED",
    ]
    assert ContextEvent.objects.get(code="RECOVERY_TRIGGERED").run == run
    assert len(requests()) == 1
    assert estimated(dialog) <= 3500
    assert dialog.current_leaf is not None
    assert dialog.current_leaf.content == "Done."


def test_an_answer_that_is_too_long_beside_its_prompt_is_told_with_what_to_do(dialog: Dialog, as_alice: Client) -> None:
    standin = CompatibleStandin(window=2048, counts_answer=True)
    Agent.objects.update(max_output_tokens=2000)
    with serving(standin.app()) as url:
        Provider.objects.update(kind="openai", base_url=f"{url}/v1")
        LLM.objects.update(model_id=standin.model, context_length=None, compaction="automatic", tool_calling="off")
        ask(dialog, long_text(1, 12))
        # A slice of the driver is one try.
        async_to_sync(drive)(dialog.pk)
        shown = page(as_alice, f"/dialogs/{dialog.pk}/").text
        drive_until_idle(dialog)

    assert list(Generation.objects.values_list("error_code", flat=True)) == ["answer_too_long", ""]
    assert "Prompt and answer together are longer than the LLM's context window" in shown
    assert "lower the agent's max output tokens" in shown
