"""A slice of the driver that fails: tried again a little later, and after the third failure the turn ends, in words."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import Client
from django.utils import timezone

from dialogs.driver.run import drive
from dialogs.driver.writes import rounds
from dialogs.models import Dialog, Generation, QueuedMessage, Reminder, ToolCall
from dialogs.turns.reads.turns import due_dialogs
from dialogs.turns.writes import lease
from dialogs.turns.writes.autonomous import start_run
from dialogs.turns.writes.messages import go_on, post_message, retry
from health.models import ContextEvent
from tests.builders import a_generation
from tests.dialogs.driver.conftest import Play, ask, calling, drive_until_idle, said

pytestmark = pytest.mark.django_db(transaction=True)

LATER = {"match": "Later", **said(120, "Later done.")}
LOOK: tuple[dict[str, Any], ...] = (LATER, calling(120, "look_around"), said(120, "Done."))


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No round of tools can be closed, for a reason that nobody thought of."""

    def close_round(_held: Any) -> None:
        raise ZeroDivisionError("nobody thought of /srv/secret")

    monkeypatch.setattr(rounds, "close_round", close_round)
    return monkeypatch


def drive_to_the_end(dialog: Dialog) -> Dialog:
    """As `drive_until_idle`; a dialog that never comes to rest fails the test."""

    async def bounded() -> None:
        async with asyncio.timeout(20):
            while (await Dialog.objects.aget(pk=dialog.pk)).is_busy:
                await drive(dialog.pk)
                await asyncio.sleep(0.01)

    async_to_sync(bounded)()
    dialog.refresh_from_db()
    return dialog


def the_worker_dies(dialog: Dialog) -> None:
    """It claims the dialog, does something, and is never heard of again."""
    Dialog.objects.filter(pk=dialog.pk).update(lease_until=None)
    assert lease.claim(dialog.pk)


def its_lease_runs_out(dialog: Dialog) -> None:
    Dialog.objects.filter(pk=dialog.pk).update(lease_until=timezone.now())


def slice_of(dialog: Dialog) -> None:
    Dialog.objects.filter(pk=dialog.pk).update(lease_until=None)
    async_to_sync(drive)(dialog.pk)
    dialog.refresh_from_db()


def test_a_slice_that_fails_is_tried_again_after_a_wait_that_grows(
    dialog: Dialog, play: Play, broken: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.DOMINDS_BACKOFF_BASE_SECONDS, settings.DOMINDS_BACKOFF_MAX_SECONDS = 2, 60
    play(*LOOK)
    ask(dialog)
    slice_of(dialog)

    waits = []
    for _ in range(2):
        slice_of(dialog)
        assert dialog.lease_until is not None
        waits.append((dialog.lease_until - timezone.now()).total_seconds())

    assert waits == [pytest.approx(2, abs=1), pytest.approx(4, abs=1)]
    assert (dialog.crashes, dialog.is_busy, due_dialogs()) == (2, True, []), "nobody takes it up before"


def test_a_fault_that_goes_away_costs_nothing(dialog: Dialog, play: Play, broken: pytest.MonkeyPatch) -> None:
    play(*LOOK)
    ask(dialog)
    for _ in range(3):
        slice_of(dialog)
    broken.undo()

    drive_to_the_end(dialog)

    assert dialog.messages.last().content == "Done."
    assert dialog.paused_by == ""


def test_the_third_failure_ends_the_turn_and_the_person_is_told_what_happened_and_what_to_do(
    dialog: Dialog, play: Play, broken: pytest.MonkeyPatch, as_alice: Client, caplog: pytest.LogCaptureFixture
) -> None:
    requests = play(*LOOK)
    ask(dialog)

    with caplog.at_level(logging.ERROR):
        drive_to_the_end(dialog)

    last = Generation.objects.latest("pk")
    assert (last.status, last.error_code, last.error_message) == ("failed", "slice_failed", "ZeroDivisionError")
    assert (dialog.answer_due, dialog.is_busy, dialog.paused_by) == (False, False, "failure")
    assert len(requests()) == 1
    assert [call.is_open for call in ToolCall.objects.all()] == [False]

    page = as_alice.get(f"/dialogs/{dialog.pk}/").content.decode()
    assert "Dominds failed three times while it worked on this" in page
    assert f"/dialogs/{dialog.pk}/retry/" in page
    assert "/srv/secret" not in page
    assert "Working…" not in page

    # An event and a line of the log keep why.
    event = ContextEvent.objects.get(code="SLICE_FAILED")
    assert (event.dialog, event.facts) == (dialog, {"cause": "ZeroDivisionError", "failures": 3})
    (line,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert "ended" in line.getMessage()
    assert line.exc_info
    assert isinstance(line.exc_info[1], ZeroDivisionError)


def test_what_waits_has_its_turn_when_the_person_goes_on(
    dialog: Dialog, play: Play, broken: pytest.MonkeyPatch
) -> None:
    play(*LOOK)
    ask(dialog)
    post_message(dialog=dialog, content="Later 1")
    drive_to_the_end(dialog)
    broken.undo()
    assert QueuedMessage.objects.count() == 1

    post_message(dialog=dialog, content="Later 2")
    drive_to_the_end(dialog)

    typed = dialog.messages.filter(origin="typed").values_list("content", flat=True)
    assert sorted(typed) == ["Hello", "Later 1", "Later 2"]
    assert dialog.messages.last().content == "Later done."


@pytest.mark.parametrize("action", [retry, go_on])
def test_a_person_who_goes_on_has_three_tries_again(
    dialog: Dialog, play: Play, broken: pytest.MonkeyPatch, action: Any
) -> None:
    play(*LOOK)
    ask(dialog)
    post_message(dialog=dialog, content="Later")
    drive_to_the_end(dialog)
    broken.undo()

    action(dialog=dialog)
    drive_to_the_end(dialog)

    assert dialog.crashes == 0
    assert dialog.messages.last().content == "Later done."


@pytest.mark.parametrize("how", ["typed", "push"])
def test_what_is_typed_or_pushed_begins_the_count_anew(dialog: Dialog, play: Play, how: str) -> None:
    play(said(120))
    if how == "push":
        start_run(dialog=dialog, goal="Ship it", max_generations=1)
    Dialog.objects.update(crashes=2)
    if how == "typed":
        ask(dialog)

    drive_to_the_end(dialog)

    assert dialog.crashes == 0
    assert dialog.messages.filter(origin=how).exists()


def test_a_run_that_keeps_failing_rests(dialog: Dialog, play: Play, broken: pytest.MonkeyPatch) -> None:
    play(calling(120, "look_around"))
    start_run(dialog=dialog, goal="Ship it", max_generations=50)

    drive_to_the_end(dialog)

    assert dialog.paused_by == "failure"
    assert Generation.objects.count() == 2


def test_a_worker_that_is_killed_each_time_is_counted_though_it_recorded_nothing(dialog: Dialog, play: Play) -> None:
    requests = play(*LOOK)
    ask(dialog)
    for _ in range(3):
        the_worker_dies(dialog)
    its_lease_runs_out(dialog)

    drive_to_the_end(dialog)

    last = Generation.objects.latest("pk")
    assert (last.status, last.error_code, dialog.paused_by) == ("failed", "worker_died", "failure")
    assert ContextEvent.objects.get().facts == {"cause": "worker_died", "failures": 3}
    assert requests() == []


def test_workers_that_die_after_they_got_somewhere_are_no_fault_of_the_turn(dialog: Dialog, play: Play) -> None:
    play(*LOOK)
    ask(dialog)
    for _ in range(5):
        the_worker_dies(dialog)
        Dialog.objects.filter(pk=dialog.pk).update(last_seq=Dialog.objects.get().last_seq + 1)
    its_lease_runs_out(dialog)

    drive_to_the_end(dialog)

    assert dialog.messages.last().content == "Done."


def test_a_turn_that_cannot_even_be_ended_in_words_is_ended(
    dialog: Dialog, play: Play, broken: pytest.MonkeyPatch
) -> None:
    play(*LOOK)
    ask(dialog)
    broken.setattr("dialogs.driver.writes.turns.withdraw_open_calls", lambda *_a, **_k: 1 / 0)

    drive_to_the_end(dialog)

    assert (dialog.answer_due, dialog.is_busy, dialog.paused_by) == (False, False, "failure")


def test_a_continuation_package_that_is_too_long_is_refused_with_its_size(dialog: Dialog, play: Play) -> None:
    package = '{"reminder_content": "%s"}' % ("x" * 9_000)
    play(calling(120, "clear_mind", package), said(120, "Shorter then."))
    ask(dialog)

    drive_to_the_end(dialog)

    result = dialog.messages.get(role="tool").content
    assert "9,000 characters" in result
    assert "8,000" in result
    assert result.startswith("Not cleared")
    assert (dialog.courses.count(), ToolCall.objects.get().status) == (1, "failed")


def test_a_package_beside_fifty_reminders_is_refused_with_their_number(dialog: Dialog, play: Play) -> None:
    course = dialog.courses.get()
    Reminder.objects.bulk_create(
        Reminder(dialog=dialog, number=n, position=n, content="r", author="agent", course=course) for n in range(1, 51)
    )
    play(calling(120, "clear_mind", '{"reminder_content": "More"}'), said(120, "Joined."))
    ask(dialog)

    drive_to_the_end(dialog)

    assert "50 reminders" in dialog.messages.get(role="tool").content
    assert dialog.courses.count() == 1


def test_generations_numbered_with_gaps_are_gone_on_with(dialog: Dialog, play: Play) -> None:
    play(said(120, "Hi."))
    ask(dialog)
    a_generation(dialog, status="finished")
    Generation.objects.update(number=2)

    drive_until_idle(dialog)

    assert list(Generation.objects.values_list("number", "status")) == [(2, "finished"), (3, "finished")]
