"""What a person sees of a run: while it is under way, and after it has ended until they speak."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from dialogs.models import AutonomousRun, Course, Dialog
from dialogs.transcript.reads.autonomous import RunStatus, rest_reason, run_status
from dialogs.turns.writes.autonomous import end_run, finish_run, start_run
from dialogs.turns.writes.messages import post_message
from tests.builders import an_answer


def seen(dialog: Dialog) -> RunStatus:
    dialog.refresh_from_db()
    status = run_status(dialog)
    assert status is not None
    return status


def started(dialog: Dialog, *, seconds_ago: float = 0) -> None:
    start_run(dialog=dialog, goal="Tidy the archive", max_generations=300)
    AutonomousRun.objects.update(started_at=timezone.now() - timedelta(seconds=seconds_ago))


def test_courses_are_those_of_the_run(dialog: Dialog) -> None:
    dialog.courses.create(number=2)  # opened before it
    started(dialog)
    AutonomousRun.objects.update(started_at=timezone.now())
    dialog.courses.create(number=3)
    dialog.courses.create(number=4)

    assert seen(dialog).courses == 3


def test_a_course_opened_after_the_end_is_not_the_runs(dialog: Dialog) -> None:
    started(dialog)
    end_run(dialog=dialog)
    dialog.courses.create(number=2)
    Course.objects.filter(number=2).update(opened_at=timezone.now() + timedelta(seconds=1))

    assert seen(dialog).courses == 1


def test_an_ended_run_says_how_it_ended_and_its_clock_stands(dialog: Dialog) -> None:
    started(dialog, seconds_ago=60)
    finish_run(dialog, summary="All boxes are labelled.")
    AutonomousRun.objects.update(ended_at=timezone.now() - timedelta(seconds=20))

    status = seen(dialog)

    assert not status.is_active
    assert (status.ended_by, status.summary) == ("done", "All boxes are labelled.")
    assert status.elapsed_seconds in {39, 40}


def test_an_ended_run_is_out_of_sight_once_the_person_speaks(dialog: Dialog) -> None:
    post_message(dialog=dialog, content="Before")
    started(dialog)
    finish_run(dialog, summary="Done.")
    an_answer(dialog)  # not the person's word
    assert seen(dialog).ended_by == "done"

    post_message(dialog=dialog, content="Thanks")

    assert run_status(dialog) is None


def test_the_newest_run_is_seen(dialog: Dialog) -> None:
    started(dialog)
    finish_run(dialog, summary="First.")
    started(dialog)
    finish_run(dialog, summary="Second.")

    assert seen(dialog).summary == "Second."


@pytest.mark.parametrize(("due", "reason"), [("caution", "person"), ("", "")])
def test_a_rest_is_told_only_where_it_holds_something_back(dialog: Dialog, due: str, reason: str) -> None:
    post_message(dialog=dialog, content="Hello")
    an_answer(dialog)
    Dialog.objects.update(paused_by="person")

    Course.objects.update(due=due)

    assert rest_reason(Dialog.objects.get()) == reason
