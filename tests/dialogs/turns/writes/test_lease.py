"""The row that whoever holds a dialog's lease writes to: as it is, and read again only where somebody changed it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from dialogs.models import Dialog
from dialogs.turns.reads.turns import dialog_to_drive, due_dialogs
from dialogs.turns.writes.lease import Claim, LeaseLost, claim, fenced
from health.loops import EVERY_CALLS

pytestmark = pytest.mark.django_db


def test_a_lease_from_before_the_clock_went_back_keeps_nobody_out(dialog: Dialog) -> None:
    """Whoever held it has died: no worker took the dialog up until the clock had caught up."""
    held = timezone.now() + timedelta(hours=1)
    Dialog.objects.update(wake_seq=1, lease_until=held)

    assert due_dialogs() == [dialog.pk]
    assert claim(dialog.pk) is not None


def test_a_clock_that_is_a_little_ahead_elsewhere_is_believed(dialog: Dialog) -> None:
    Dialog.objects.update(wake_seq=1, lease_until=timezone.now() + timedelta(minutes=5))

    assert due_dialogs() == []
    assert claim(dialog.pk) is None


def as_it_is_written(dialog: Dialog) -> tuple[Claim, Dialog]:
    """A claim, and the dialog as its driver has read it."""
    return Claim(dialog.pk, dialog.lease_token, dialog.wake_seq), dialog_to_drive(dialog.pk)


def test_of_a_dialog_that_nobody_changed_nothing_is_read_again(
    dialog: Dialog, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    claim, known = as_it_is_written(dialog)

    with transaction.atomic(), django_assert_num_queries(1) as asked:
        row = fenced(claim, known=known)
        assert row.llm.provider == known.llm.provider

    assert "title" not in asked.captured_queries[0]["sql"]
    assert row == known
    assert {name: value for name, value in vars(row).items() if name != "_state"} == {
        name: value for name, value in vars(known).items() if name != "_state"
    }


def test_what_is_written_to_it_changes_nothing_that_was_read(dialog: Dialog) -> None:
    """The write may fail, and is tried again then."""
    claim, known = as_it_is_written(dialog)

    with transaction.atomic():
        row = fenced(claim, known=known)
        row.last_seq += 1
        row.current_leaf = None

    assert known.last_seq == dialog.last_seq
    assert "current_leaf" in known._state.fields_cache


def test_what_somebody_changed_meanwhile_is_read(dialog: Dialog) -> None:
    claim, known = as_it_is_written(dialog)
    Dialog.objects.update(title="Another", version=F("version") + 1)

    with transaction.atomic():
        assert fenced(claim, known=known).title == "Another"


def test_that_a_loop_is_to_be_looked_for_is_read_although_it_makes_no_version(dialog: Dialog) -> None:
    claim, known = as_it_is_written(dialog)
    Dialog.objects.update(unchecked_calls=EVERY_CALLS)

    with transaction.atomic():
        assert fenced(claim, known=known).unchecked_calls == EVERY_CALLS


def test_whoever_lost_it_writes_nothing(dialog: Dialog) -> None:
    claim, known = as_it_is_written(dialog)
    Dialog.objects.update(lease_token=F("lease_token") + 1)

    with transaction.atomic(), pytest.raises(LeaseLost):
        fenced(claim, known=known)
