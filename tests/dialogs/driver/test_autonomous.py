"""Autonomous mode as the driver plays it, where what it does is no pure decision."""

from __future__ import annotations

import pytest

from dialogs.models import Dialog, Generation, RemediationPrompt
from dialogs.selectors.autonomous import rest_reason
from dialogs.services.autonomous import start_run
from dialogs.services.pausing import go_on
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
