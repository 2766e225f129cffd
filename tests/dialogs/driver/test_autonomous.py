"""Autonomous mode as the driver plays it, where what it does is no pure decision."""

from __future__ import annotations

import pytest
from asgiref.sync import async_to_sync
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.db.models import F
from django.template.loader import render_to_string
from django.utils import timezone

from dialogs.driver.run import drive
from dialogs.models import Dialog, Generation, QueuedMessage, RemediationPrompt, Reminder
from dialogs.transcript.reads.autonomous import rest_reason
from dialogs.turns.reads.turns import due_dialogs, turn_status
from dialogs.turns.writes.autonomous import start_run
from dialogs.turns.writes.messages import go_on, post_message, request_stop
from health.models import ContextEvent
from tests.dialogs.driver.conftest import Play, calling, drive_until_idle, said

pytestmark = pytest.mark.django_db(transaction=True)
# Of the window of 1,000 tokens that the LLM of the tests has.
CRITICAL = 950


def test_a_run_ends_at_its_limit_although_a_prompt_is_due(dialog: Dialog, play: Play) -> None:
    play(said(CRITICAL))
    run = start_run(dialog=dialog, goal="Ship it", max_generations=2)

    drive_until_idle(dialog)

    run.refresh_from_db()
    dialog.refresh_from_db()
    assert rest_reason(dialog) == "limit", "no person paused it"
    assert (run.ended_by, Generation.objects.count(), RemediationPrompt.objects.count()) == ("limit", 2, 1)


def test_a_run_ends_at_its_limit_in_the_middle_of_a_round(dialog: Dialog, play: Play) -> None:
    play(calling(CRITICAL, "add_reminder", '{"content": "x"}'))
    start_run(dialog=dialog, goal="Ship it", max_generations=2)

    drive_until_idle(dialog)

    assert (Generation.objects.count(), dialog.answer_due) == (2, False)


def test_what_was_due_at_the_limit_is_done_when_the_person_says_so(dialog: Dialog, play: Play) -> None:
    play(said(CRITICAL), said(10))
    start_run(dialog=dialog, goal="Ship it", max_generations=1)
    drive_until_idle(dialog)

    go_on(dialog=dialog)
    drive_until_idle(dialog)

    assert (Generation.objects.count(), RemediationPrompt.objects.count()) == (2, 1)


def test_a_run_pauses_when_its_owners_account_is_switched_off(dialog: Dialog, play: Play) -> None:
    play(calling(10, "add_reminder", '{"content": "x"}'))
    start_run(dialog=dialog, goal="Ship it", max_generations=5)
    async_to_sync(drive)(dialog.pk)
    User.objects.filter(pk=dialog.owner_id).update(is_active=False)

    drive_until_idle(dialog)

    assert (Generation.objects.count(), Reminder.objects.count(), dialog.answer_due) == (1, 0, False)
    assert rest_reason(dialog) == "owner"
    assert [event.code for event in ContextEvent.objects.all()] == ["OWNER_OFF"]


def test_a_run_that_paused_so_goes_on_when_a_person_lets_it(dialog: Dialog, play: Play) -> None:
    play(said(10))
    run = start_run(dialog=dialog, goal="Ship it", max_generations=2)
    User.objects.filter(pk=dialog.owner_id).update(is_active=False)
    drive_until_idle(dialog)
    User.objects.filter(pk=dialog.owner_id).update(is_active=True)
    Dialog.objects.update(wake_seq=F("wake_seq") + 1)
    drive_until_idle(dialog)
    assert Generation.objects.count() == 0

    go_on(dialog=dialog)
    drive_until_idle(dialog)

    run.refresh_from_db()
    assert (run.ended_by, Generation.objects.count()) == ("limit", 2)


def test_what_a_person_typed_before_waits_for_them(dialog: Dialog, play: Play) -> None:
    play(said(10))
    start_run(dialog=dialog, goal="Ship it", max_generations=1)
    post_message(dialog=dialog, content="And then?")
    User.objects.filter(pk=dialog.owner_id).update(is_active=False)

    drive_until_idle(dialog)

    assert (Generation.objects.count(), QueuedMessage.objects.count()) == (0, 1)


DOWN = {"error": {"code": "provider_unreachable", "message": "nobody listens"}}


def test_an_outage_of_many_tries_does_not_end_a_run(dialog: Dialog, play: Play, settings: LazySettings) -> None:
    settings.DOMINDS_BACKOFF_BASE_SECONDS = 0.001
    play(*[DOWN] * 8, said(10), said(10))
    run = start_run(dialog=dialog, goal="Ship it", max_generations=2)

    drive_until_idle(dialog)

    run.refresh_from_db()
    assert (run.ended_by, run.generations) == ("limit", 2), "tries that fail are no generations"
    assert Generation.objects.filter(status="failed").count() == 8


def a_long_wait(dialog: Dialog, play: Play, settings: LazySettings) -> Generation:
    """An agent on its own whose provider is down: the next try is in a quarter of an hour."""
    settings.DOMINDS_BACKOFF_BASE_SECONDS = 3_600
    play(DOWN, said(10))
    start_run(dialog=dialog, goal="Ship it", max_generations=1)
    # One slice asks, the next one sees that there is nothing to do for a while.
    for _slice in range(2):
        async_to_sync(drive)(dialog.pk)
    dialog.refresh_from_db()
    return Generation.objects.get()


def test_a_long_wait_holds_no_worker_and_is_taken_up_in_time(
    dialog: Dialog, play: Play, settings: LazySettings
) -> None:
    failed = a_long_wait(dialog, play, settings)
    assert (dialog.is_busy, dialog.lease_until, due_dialogs()) == (True, None, [])

    Generation.objects.filter(pk=failed.pk).update(retry_at=timezone.now())
    assert due_dialogs() == [dialog.pk]
    drive_until_idle(dialog)

    assert Generation.objects.filter(status="finished").count() == 1


def test_the_page_says_when_the_next_try_is_and_until_when_it_is_tried(
    dialog: Dialog, play: Play, settings: LazySettings
) -> None:
    failed = a_long_wait(dialog, play, settings)

    status = turn_status(dialog)

    assert status.tried_until is not None
    assert (status.tried_until - timezone.now()).total_seconds() == pytest.approx(86_400, abs=60)
    page = render_to_string("dialogs/_turn.html", {"status": status, "dialog": dialog})
    assert failed.retry_at is not None
    assert f"The next try is at {failed.retry_at:%H:%M}." in page
    assert "Stop" in page


def test_stop_ends_a_long_wait_at_once(dialog: Dialog, play: Play, settings: LazySettings) -> None:
    a_long_wait(dialog, play, settings)

    request_stop(dialog=dialog)
    drive_until_idle(dialog)

    assert (dialog.answer_due, dialog.paused_by, Generation.objects.count()) == (False, "person", 1)
