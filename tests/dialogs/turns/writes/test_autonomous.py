"""Runs of autonomous mode: how they begin, are counted, and end in one of three ways."""

from __future__ import annotations

import pytest
from django.db import IntegrityError
from django.utils import timezone

from dialogs.common.errors import DialogError
from dialogs.models import AutonomousRun, Dialog
from dialogs.turns.writes.autonomous import count_generation, end_run, finish_run, reach_limit, start_run
from dialogs.turns.writes.messages import post_message


def a_run(dialog: Dialog, goal: str = "Tidy the archive", max_generations: int = 3) -> AutonomousRun:
    run = start_run(dialog=dialog, goal=goal, max_generations=max_generations)
    dialog.refresh_from_db()
    return run


def test_a_run_wakes_the_driver_and_lets_a_paused_dialog_go_on(dialog: Dialog) -> None:
    Dialog.objects.update(paused_by="failure", archived_at=timezone.now())
    dialog.courses.create(number=2)

    run = a_run(dialog)

    assert dialog.is_busy
    assert (dialog.paused_by, dialog.archived_at) == ("", None)
    assert (run.goal, run.max_generations, run.generations, run.ended_at) == ("Tidy the archive", 3, 0, None)
    assert run.first_course == 2, "in which it began"


@pytest.mark.parametrize(("before", "title"), [("", "Tidy the archive"), ("Archive", "Archive")])
def test_a_goal_names_a_dialog_in_which_nothing_was_said_unless_it_has_a_name(
    dialog: Dialog, before: str, title: str
) -> None:
    Dialog.objects.update(title=before, titled_by_person=bool(before))

    a_run(dialog, "Tidy the archive\nof 1998")

    assert dialog.title == title


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("  Go  \n", "Go"),
        ("a\r\nb", "a\nb"),
        ("a\0b", "a␀b"),  # PostgreSQL refuses NUL
        ("长" * 20_000, "长" * 20_000),  # the longest
    ],
)
def test_a_goal_is_stored_as_text(dialog: Dialog, typed: str, stored: str) -> None:
    assert a_run(dialog, typed).goal == stored


def test_a_second_run_is_refused_while_one_is_active_by_the_database_itself_too(dialog: Dialog) -> None:
    a_run(dialog)

    with pytest.raises(DialogError, match="already"):
        a_run(dialog)
    assert AutonomousRun.objects.count() == 1
    with pytest.raises(IntegrityError):
        AutonomousRun.objects.create(dialog=dialog, goal="Go", max_generations=1, first_course=1)


def test_a_dialog_in_the_trash_keeps_still(dialog: Dialog) -> None:
    Dialog.objects.update(trashed_at=timezone.now())

    with pytest.raises(DialogError, match="trash"):
        a_run(dialog)


def test_ending_where_nothing_runs_does_nothing(dialog: Dialog) -> None:
    post_message(dialog=dialog, content="Hello")
    before = Dialog.objects.values().get()

    end_run(dialog=dialog)

    assert Dialog.objects.values().get() == before


def test_every_generation_counts_and_the_limit_ends_the_run(dialog: Dialog) -> None:
    run = a_run(dialog, max_generations=2)

    ended = []
    for _generation in range(2):
        count_generation(dialog)
        ended.append(reach_limit(dialog))

    run.refresh_from_db()
    assert ended == [False, True]
    assert (run.generations, run.ended_by) == (2, "limit")


def test_the_agent_ends_the_run_with_a_summary_and_browsers_hear_of_it(dialog: Dialog) -> None:
    run = a_run(dialog)
    version = dialog.version

    assert finish_run(dialog, summary="All boxes are labelled.\0")

    run.refresh_from_db()
    dialog.refresh_from_db()
    assert (run.ended_by, run.summary) == ("done", "All boxes are labelled.␀")
    assert dialog.version > version


def test_a_run_that_has_ended_stays_as_it_ended(dialog: Dialog) -> None:
    run = a_run(dialog)
    finish_run(dialog, summary="Done.")

    count_generation(dialog)

    assert not reach_limit(dialog)
    assert not finish_run(dialog, summary="Done again.")
    run.refresh_from_db()
    assert (run.generations, run.ended_by, run.summary) == (0, "done", "Done.")
