"""An answer that a server made from a part of the prompt, without a word: who asks again, how often, and what stays."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import F
from django.test import Client

from dialogs.driver.writes import turns
from dialogs.models import LLM, AutonomousRun, Dialog, Generation, Provider
from dialogs.turns.prompts import DONE_MARK
from dialogs.turns.writes import lease
from dialogs.turns.writes.autonomous import start_run
from dialogs.turns.writes.messages import choose_branch
from health.models import CompactionRun, ContextEvent
from tests.dialogs.driver.conftest import ask, ask_and_drive, drive_until_idle
from tests.dialogs.pages.test_consumers import cookie_of, watching
from tests.dialogs.pages.views.pages import page
from tests.overflow.talk import Talk, prose
from tests.standins.compatible import CompatibleStandin, Overlong, Reply
from tests.standins.serving import serving

pytestmark = pytest.mark.django_db(transaction=True)
TALK = Talk(4096, turns=14, windows=4.0)


@pytest.fixture(autouse=True)
def server(dialog: Dialog) -> Iterator[CompatibleStandin]:
    """Of the dialog's LLM: it tells no window, and cuts what does not fit."""
    standin = CompatibleStandin(window=TALK.window, overlong=Overlong.FILLED)
    with serving(standin.app()) as url:
        Provider.objects.update(kind="openai", base_url=f"{url}/v1")
        LLM.objects.update(
            model_id=standin.model,
            context_length=None,
            optimal_max_tokens=None,
            compaction="automatic",
            tool_calling="off",
        )
        dialog.refresh_from_db()
        yield standin


def talk_until_cut(dialog: Dialog, *, beside: Callable[[], Awaitable[None]] | None = None) -> None:
    """To the end of the turn in which a cut was confirmed."""
    for number in range(1, TALK.turns + 1):
        ask(dialog, TALK.turn(number))
        drive_until_idle(dialog, beside=beside)
        if ContextEvent.objects.filter(code="PROMPT_CUT").exists():
            return
    raise AssertionError("no cut was confirmed")


def tries(dialog: Dialog) -> list[Generation]:
    """Of the newest turn, oldest first."""
    assert dialog.current_leaf is not None
    return list(Generation.objects.filter(dialog=dialog, turn=dialog.current_leaf.turn).order_by("pk"))


def test_where_nobody_watches_it_is_asked_once_more_after_a_compaction(
    dialog: Dialog, server: CompatibleStandin
) -> None:
    talk_until_cut(dialog)

    first, second = tries(dialog)
    run = CompactionRun.objects.get()
    assert first.manifest["cut"]
    assert (run.trigger, run.status) == ("pre_request", "applied")
    assert (server.seen[-2].fate, server.seen[-1].fate) == ("cut", "answered")
    assert first.prompt_leaf_id == second.prompt_leaf_id
    assert dialog.current_leaf == second.message


def test_the_first_answer_stays_beside_the_second_and_is_marked(dialog: Dialog, as_alice: Client) -> None:
    talk_until_cut(dialog)
    first = tries(dialog)[0].message
    assert first is not None

    before = page(as_alice, f"/dialogs/{dialog.pk}/").text
    choose_branch(dialog=dialog, message=first)
    shown = page(as_alice, f"/dialogs/{dialog.pk}/").text

    assert "only a part of the prompt was read" not in before
    assert "only a part of the prompt was read" in shown
    assert "asked once more by itself, as nobody watched" in shown


def test_where_a_page_is_open_the_person_is_offered_to_ask_again(dialog: Dialog, as_alice: Client, alice: User) -> None:
    cookie = cookie_of(alice)

    async def watch() -> None:
        async with watching(dialog, cookie):
            while (await Dialog.objects.aget(pk=dialog.pk)).is_busy:  # noqa: ASYNC110  the driver tells nobody
                await asyncio.sleep(0.05)

    talk_until_cut(dialog, beside=watch)

    (only,) = tries(dialog)
    shown = page(as_alice, f"/dialogs/{dialog.pk}/").text
    assert only.manifest["cut"]
    assert "Ask again" in shown
    assert "asked once more by itself" not in shown


def test_where_compaction_is_off_nothing_is_asked_by_itself(dialog: Dialog) -> None:
    Dialog.objects.update(compaction="off")

    talk_until_cut(dialog)

    assert len(tries(dialog)) == 1


def test_it_is_asked_once_more_and_not_a_third_time(dialog: Dialog) -> None:
    talk_until_cut(dialog)
    second = tries(dialog)[1]
    Dialog.objects.update(wake_seq=F("wake_seq") + 1)
    claim = lease.claim(dialog.pk)
    assert claim is not None

    turns.ask_once_more(claim, generation=second)

    dialog.refresh_from_db()
    assert (dialog.answer_due, dialog.current_leaf) == (False, second.message)


def test_a_run_that_such_an_answer_ended_goes_on(dialog: Dialog, server: CompatibleStandin) -> None:
    def reply(_body: Any) -> Reply:
        """Its own answers fill the window. From the third prompt that was cut on it says that all is done; the first is
        hardly longer than the window, so the third is the one that confirms it."""
        says_done = f"\n\n{DONE_MARK}" if len(server.cuts) >= 3 else ""
        return Reply(text=prose(len(server.seen), 1500) + says_done)

    ask_and_drive(dialog, TALK.turn(1))
    server.reply = reply
    start_run(dialog=dialog, goal="Draw up the timetable.", max_generations=40)

    drive_until_idle(dialog)

    run = AutonomousRun.objects.get()
    first, second = tries(dialog)
    assert first.manifest["asked_again"]
    # Both count; the answer before the run does not.
    assert (run.ended_by, run.generations) == ("done", Generation.objects.count() - 1)
    assert second.finished_at is not None
    assert run.ended_at is not None
    assert run.ended_at > second.started_at
