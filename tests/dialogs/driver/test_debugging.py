"""The line of statistics: after every fifth generation, and only where the log is kept at DEBUG."""

from __future__ import annotations

import asyncio
import logging
import re

import pytest
from channels.db import database_sync_to_async

from dialogs.context.reads import context_stats
from dialogs.models import Dialog, Generation, Message
from dialogs.turns.reads.turns import dialog_to_drive
from dialogs.turns.writes.messages import request_stop
from tests.dialogs.compacting_builders import a_history, guard, long_text
from tests.dialogs.driver.conftest import Play, ask, ask_and_drive, drive_until_idle, said

pytestmark = pytest.mark.django_db(transaction=True)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "Context stats" in record.getMessage()]


def generate(dialog: Dialog, times: int) -> None:
    for number in range(times):
        ask_and_drive(dialog, f"Question {number}")


def test_it_comes_after_every_fifth_generation(dialog: Dialog, play: Play, caplog: pytest.LogCaptureFixture) -> None:
    play(said(10))

    with caplog.at_level(logging.DEBUG, logger="dialogs"):
        generate(dialog, 11)

    # Each question and each answer is a message.
    assert [re.sub(r"~\d+", "~N", line) for line in lines(caplog)] == [
        "Context stats: 10 messages, ~N tokens",
        "Context stats: 20 messages, ~N tokens",
    ]


def test_it_comes_also_where_the_fifth_is_cut_for_a_compaction(
    dialog: Dialog, play: Play, caplog: pytest.LogCaptureFixture
) -> None:
    guard(dialog, window=4000)
    a_history(dialog, pairs=10)
    answer = [f"{word} " for word in long_text(3, 90).split()]
    tried = {"match": "Which days", "text": "Monday, Tuesday"}
    play(tried, *[said(None, "Yes.")] * 4, {"text": answer}, said(None, "and that is all."))

    with caplog.at_level(logging.DEBUG, logger="dialogs"):
        generate(dialog, 5)

    assert Message.objects.filter(cut_short=True).count() == 1
    assert len(lines(caplog)) == 1


def test_a_stopped_answer_does_not_bring_it_again(dialog: Dialog, play: Play, caplog: pytest.LogCaptureFixture) -> None:
    play(*[said(10)] * 5, {"hang": True})

    async def stop() -> None:
        # It is a row: there is no event to wait for.
        while not await Generation.objects.filter(status="running").aexists():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await database_sync_to_async(request_stop)(dialog=dialog)

    with caplog.at_level(logging.DEBUG, logger="dialogs"):
        generate(dialog, 5)
        ask(dialog, "One more")
        drive_until_idle(dialog, beside=stop)

    assert Generation.objects.latest("id").status == "stopped"
    assert len(lines(caplog)) == 1


def test_it_tells_what_programs_are_told(dialog: Dialog, play: Play, caplog: pytest.LogCaptureFixture) -> None:
    play(said(10))

    with caplog.at_level(logging.DEBUG, logger="dialogs"):
        generate(dialog, 5)

    assert lines(caplog) == [str(context_stats(dialog_to_drive(dialog.pk)))]


def test_without_debugging_there_is_none(dialog: Dialog, play: Play, caplog: pytest.LogCaptureFixture) -> None:
    play(said(10))

    with caplog.at_level(logging.INFO, logger="dialogs"):
        generate(dialog, 5)

    assert not lines(caplog)
