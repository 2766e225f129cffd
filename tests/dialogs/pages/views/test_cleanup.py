"""The page of cleanup tasks, "Report & Continue" and the offer in the dialog: whose they are, and what they show."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from dialogs.models import LLM, Dialog
from dialogs.turns.writes.events import log
from dialogs.turns.writes.messages import post_message
from health.models import CleanupTask, ContextEvent
from tests.builders import a_generation
from tests.dialogs.compacting_builders import guard
from tests.dialogs.pages.views.pages import page

TASKS = "/cleanup/"


@pytest.fixture
def task(dialog: Dialog, alice: User) -> CleanupTask:
    guard(dialog)
    Dialog.objects.filter(pk=dialog.pk).update(title="The pump")
    return CleanupTask.objects.create(dialog=dialog, assignee=alice)


def test_its_owner_is_told_what_can_be_done_and_where(as_alice: Client, dialog: Dialog, task: CleanupTask) -> None:
    shown = page(as_alice, TASKS)

    assert "The pump" in shown.text
    for link in (f"/dialogs/{dialog.pk}/", reverse("dialog_archive_search", args=[dialog.pk])):
        assert link in shown.links()
    assert shown.offences == []


def test_staff_may_give_it_to_somebody_and_see_no_contents(
    as_sam: Client, sam: User, dialog: Dialog, task: CleanupTask
) -> None:
    task.done = ["pin"]
    task.save()

    shown = page(as_sam, TASKS)
    as_sam.post(f"{TASKS}{task.pk}/", {"assignee": sam.pk})

    task.refresh_from_db()
    assert "The pump" not in shown.text
    assert not any(str(dialog.pk) in link for link in shown.links())
    assert (task.assignee, task.done) == (sam, ["pin"])


def test_others_know_nothing_of_it(as_bob: Client, task: CleanupTask) -> None:
    assert "Nothing to clean up" in page(as_bob, TASKS).text
    assert as_bob.post(f"{TASKS}{task.pk}/", {"do": "close"}).status_code == 404


def test_what_is_ticked_stays_and_a_closed_task_is_told_of(as_alice: Client, alice: User, task: CleanupTask) -> None:
    form = {"checklist": "1", "done": ["pin", "nonsense"], "assignee": alice.pk}
    as_alice.post(f"{TASKS}{task.pk}/", form)
    as_alice.post(f"{TASKS}{task.pk}/", form | {"do": "close"})

    task.refresh_from_db()
    assert (task.done, task.closed_by) == (["pin"], alice)
    assert "Nothing to clean up" in page(as_alice, TASKS).text


def test_it_cannot_be_given_to_just_anybody(as_alice: Client, bob: User, task: CleanupTask) -> None:
    as_alice.post(f"{TASKS}{task.pk}/", {"assignee": bob.pk})

    task.refresh_from_db()
    assert task.assignee is None


# --- Two people with the same task before their eyes ------------------------------------------


def test_who_only_ticks_leaves_whom_another_has_given_it_to(
    as_alice: Client, as_sam: Client, alice: User, sam: User, task: CleanupTask
) -> None:
    seen = {"shown": alice.pk, "assignee": alice.pk}
    as_sam.post(f"{TASKS}{task.pk}/", seen | {"assignee": sam.pk})

    as_alice.post(f"{TASKS}{task.pk}/", seen | {"checklist": "1", "done": ["pin"]})

    task.refresh_from_db()
    assert (task.assignee, task.done) == (sam, ["pin"])


def test_of_two_who_give_it_to_different_people_the_second_is_told(
    as_alice: Client, as_sam: Client, alice: User, sam: User, task: CleanupTask
) -> None:
    as_sam.post(f"{TASKS}{task.pk}/", {"shown": alice.pk, "assignee": sam.pk})

    told = as_alice.post(f"{TASKS}{task.pk}/", {"shown": alice.pk, "assignee": ""}, follow=True)

    task.refresh_from_db()
    assert task.assignee == sam
    assert "Somebody has changed meanwhile who does this." in told.content.decode()


def test_of_two_who_close_it_the_second_is_told(as_alice: Client, as_sam: Client, sam: User, task: CleanupTask) -> None:
    as_sam.post(f"{TASKS}{task.pk}/", {"do": "close"})

    told = as_alice.post(f"{TASKS}{task.pk}/", {"do": "close"}, follow=True)

    task.refresh_from_db()
    assert task.closed_by == sam
    assert "Somebody has closed this task meanwhile." in told.content.decode()


def test_the_panel_of_the_dialog_leads_to_an_open_task(as_alice: Client, dialog: Dialog, task: CleanupTask) -> None:
    assert TASKS in page(as_alice, f"/dialogs/{dialog.pk}/").links()

    CleanupTask.objects.all().delete()

    assert TASKS not in page(as_alice, f"/dialogs/{dialog.pk}/").links()


@pytest.mark.parametrize(
    ("compaction", "label"), [("automatic", "Report & Continue"), ("off", "Compact and ask again")]
)
@pytest.mark.parametrize(("code", "buttons"), [("context_overflow", 2), ("rate_limited", 0)])
def test_an_overflow_can_be_reported_in_its_row_and_in_the_panel(
    as_alice: Client, dialog: Dialog, code: str, buttons: int, compaction: str, label: str
) -> None:
    LLM.objects.update(compaction=compaction)
    post_message(dialog=dialog, content="Hello")
    dialog.refresh_from_db()
    a_generation(dialog, status="failed", error_code=code)
    Dialog.objects.filter(pk=dialog.pk).update(answer_due=False, handled_seq=dialog.wake_seq)

    assert page(as_alice, f"/dialogs/{dialog.pk}/").text.count(label) == buttons
    as_alice.post(f"/dialogs/{dialog.pk}/report/")

    assert ContextEvent.objects.filter(code="REPORTED").exists() == bool(buttons)


def test_an_offered_fresh_start_can_be_declined(as_alice: Client, dialog: Dialog) -> None:
    guard(dialog)
    log("OVER_HIT", dialog, escalated="offer")
    assert "Start fresh with a handover" in page(as_alice, f"/dialogs/{dialog.pk}/").text

    as_alice.post(f"/dialogs/{dialog.pk}/fresh-start/decline/")

    assert "Start fresh with a handover" not in page(as_alice, f"/dialogs/{dialog.pk}/").text
