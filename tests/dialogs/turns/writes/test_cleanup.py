"""Tasks to clean a context up: when one opens, and that there is never a second."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.auth.models import User
from django.utils import timezone

from dialogs.models import Dialog
from dialogs.turns.writes.events import log, open_if_frequent
from health.models import CleanupTask, ContextEvent


def warned(dialog: Dialog, *minutes: int) -> None:
    for ago in minutes:
        event = log("WARNING", dialog)
        ContextEvent.objects.filter(pk=event.pk).update(happened_at=timezone.now() - timedelta(minutes=ago))
    open_if_frequent(dialog)


def test_the_third_warning_within_an_hour_opens_a_task_for_the_owner(dialog: Dialog, alice: User) -> None:
    warned(dialog, 59, 30)
    assert not CleanupTask.objects.exists()

    warned(dialog, 0)

    assert CleanupTask.objects.get().assignee == alice


def test_three_warnings_in_more_than_an_hour_open_none(dialog: Dialog) -> None:
    warned(dialog, 61, 30, 0)

    assert not CleanupTask.objects.exists()


def test_warnings_that_were_imported_do_not_count(dialog: Dialog) -> None:
    log("WARNING", dialog)
    log("WARNING", dialog)
    ContextEvent.objects.update(agent=None)

    warned(dialog, 0)

    assert not CleanupTask.objects.exists()


def test_more_warnings_open_no_second_task(dialog: Dialog) -> None:
    warned(dialog, 3, 2, 1)
    warned(dialog, 0)

    assert CleanupTask.objects.count() == 1


def test_after_a_task_was_closed_only_later_warnings_count(dialog: Dialog, alice: User) -> None:
    warned(dialog, 3, 2, 1)
    CleanupTask.objects.update(closed_at=timezone.now(), closed_by=alice)

    warned(dialog, 0)

    assert CleanupTask.objects.filter(closed_at=None).count() == 0
