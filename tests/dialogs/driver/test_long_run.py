"""Hundreds of generations without a human: course after course, nothing lost, and the last as cheap as the first.

The ordinary run makes a hundred of them, `make test-long` three hundred.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Sequence
from itertools import pairwise, takewhile
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import connection

from dialogs.common.broadcast import group_name
from dialogs.driver.run import drive
from dialogs.models import LLM, Agent, Dialog
from dialogs.models.agent import WhenFull
from dialogs.providers.base import ChatMessage, ToolCall
from dialogs.providers.laws import broken_law
from dialogs.turns.writes.autonomous import start_run
from tests.dialogs.driver.conftest import Play, ask, drive_until_idle, said
from tests.dialogs.driver.long_script import CYCLE, GENERATIONS, WINDOW, reminder_of, steps

logger = logging.getLogger(__name__)
pytestmark = pytest.mark.django_db(transaction=True)


class QueryCount:
    def __init__(self) -> None:
        self.queries = 0

    def __call__(self, execute: Any, *call: Any) -> Any:
        self.queries += 1
        return execute(*call)


def drive_counting(dialog: Dialog) -> list[int]:
    """Drive to the end; how many queries each slice made. A slice is a generation."""
    counted = QueryCount()

    async def slices() -> list[int]:
        made = []
        while (await Dialog.objects.aget(pk=dialog.pk)).is_busy:
            before = counted.queries
            await drive(dialog.pk)
            made.append(counted.queries - before)
        return made

    with connection.execute_wrapper(counted):
        return async_to_sync(slices)()


@pytest.mark.parametrize("when_full", [WhenFull.COMPACT, WhenFull.REMIND])
@pytest.mark.parametrize("generations", [100, pytest.param(GENERATIONS, marks=pytest.mark.long)])
def test_a_long_run_loses_nothing_and_grows_no_dearer(
    generations: int, when_full: str, dialog: Dialog, llm: LLM, play: Play
) -> None:
    Agent.objects.update(when_full=when_full)
    llm.context_length, llm.optimal_max_tokens = WINDOW, None
    llm.save()
    requests = play(*steps(generations))
    run = start_run(dialog=dialog, goal="Build the thing", max_generations=generations)

    queries = drive_counting(dialog)

    run.refresh_from_db()
    dialog.refresh_from_db()
    assert (run.generations, run.ended_by, dialog.generations.count()) == (generations, "limit", generations)
    assert (dialog.is_busy, dialog.answer_due) == (False, False)
    courses = 2 * generations // CYCLE
    opened_by = list(dialog.courses.order_by("number").values_list("opened_by", flat=True))
    assert opened_by == ["start", *["auto", "agent"] * (courses // 2)][:courses]
    assert_every_request_is_lawful(requests())
    assert all("Build the thing" in system_of(request) for request in requests())
    assert_every_reminder_stays(requests(), courses)
    assert share_that_stays(dialog, requests()) >= 0.95
    assert_no_dearer(queries)


def share_that_stays(dialog: Dialog, requests: Sequence[dict[str, Any]]) -> float:
    """How much of a request the next one begins with, between rewrites, by characters, over all of the run."""
    rewritten = [(one.course_id, one.manifest.get("view")) for one in dialog.generations.order_by("pk")]
    texts = [json.dumps([request["tools"], request["messages"]], ensure_ascii=False) for request in requests]
    pairs = [(a, b) for (a, one), (b, other) in pairwise(zip(texts, rewritten, strict=True)) if one == other]
    share = sum(in_common(*pair) for pair in pairs) / sum(len(before) for before, _after in pairs)
    logger.info("%.1f %% of %d requests are the beginning of the next one", 100 * share, len(pairs))
    return share


def in_common(before: str, after: str) -> int:
    return sum(1 for _same in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))


def assert_every_request_is_lawful(requests: Sequence[dict[str, Any]]) -> None:
    for request in requests:
        messages = [
            ChatMessage(**{**message, "tool_calls": tuple(ToolCall(**call) for call in message["tool_calls"])})
            for message in request["messages"]
        ]
        # Pairs of calls and results, one system message, first.
        assert broken_law(messages) == ""
        assert [message.role for message in messages].count("system") == 1
        said = "\n".join(message.content for message in messages if message.role == "user")
        # A course's opening is no prompt: it stays, as the first message of its course.
        notices = [line for line in said.split("\n") if line.startswith("[System notice]")]  # not those that tools told
        assert len([line for line in notices if not line.startswith("[System notice] Course ")]) <= 1


def assert_every_reminder_stays(requests: Sequence[dict[str, Any]], courses: int) -> None:
    """Each course adds one; it stands in the call that added it, and from the next course on in the system message."""
    kept = [[n for n in range(1, courses + 1) if is_told(reminder_of(n), request)] for request in requests]
    assert kept[0] == []
    assert kept[-1] == list(range(1, courses + 1))
    assert all(earlier == later[: len(earlier)] for earlier, later in pairwise(kept))


def is_told(reminder: str, request: dict[str, Any]) -> bool:
    calls = [call["arguments"] for message in request["messages"] for call in message["tool_calls"]]
    return bool(re.search(rf"{reminder}\b", "\n".join([system_of(request), *calls])))


def system_of(request: dict[str, Any]) -> str:
    return str(request["messages"][0]["content"]) + "\n"


def assert_no_dearer(queries: list[int]) -> None:
    """Any two courses one after the other do the same work. A look at the stop flag more or less is chance."""
    first, last = sum(queries[:CYCLE]), sum(queries[-CYCLE:])
    assert last == pytest.approx(first, rel=0.03)


# While an answer comes: whoever looks on is told how far prompt and answer fill the window, estimated.


PIECES = ["The boiler in the cellar holds its pressure. "] * 20
ANSWER = "".join(PIECES)


def states_seen(dialog: Dialog) -> list[dict[str, Any]]:
    """Drive the dialog with a browser that watches it; the first states that it was sent of the answer."""
    seen: list[dict[str, Any]] = []
    layer = get_channel_layer()
    assert layer is not None

    async def watch() -> None:
        channel = await layer.new_channel()
        await layer.group_add(group_name(dialog.pk), channel)
        while len(seen) < 6:
            event = await asyncio.wait_for(layer.receive(channel), 20)
            if event["type"] == "dialog.stream":
                seen.append(event)

    drive_until_idle(dialog, beside=watch)
    return seen


def test_the_estimate_grows_with_the_answer_and_knows_the_window(dialog: Dialog, play: Play) -> None:
    play(said(10) | {"text": PIECES, "delay": 0.05})
    ask(dialog)

    sizes = [state["size"] for state in states_seen(dialog) if "size" in state]

    assert len(sizes) >= 2
    assert sizes == sorted(sizes)
    assert sizes[-1][1] == dialog.llm.context_length
    answer_tokens = sizes[-1][0] - sizes[0][0]
    assert 0 < answer_tokens < len(ANSWER) / 2
