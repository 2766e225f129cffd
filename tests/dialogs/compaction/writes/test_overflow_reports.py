""" "Report & Continue": recorded, compacted, resumed; refused where nothing overflowed; never a lower estimate."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from dialogs.common.errors import DialogError
from dialogs.compaction.work import perform
from dialogs.compaction.writes.compaction import cancel_run
from dialogs.compaction.writes.manual_compaction import report_and_continue
from dialogs.models import CompactionDisplay, Dialog, Generation
from dialogs.turns.writes.messages import post_message
from health.models import CompactionRun, ContextEvent, LlmCalibration
from tests.builders import a_generation
from tests.dialogs.compacting_builders import a_history, estimated


@pytest.fixture
def overflowed(dialog: Dialog) -> Dialog:
    """A long dialog whose last message the provider refused; it rests."""
    a_history(dialog, pairs=12)
    post_message(dialog=dialog, content="And now?")
    dialog.refresh_from_db()
    a_generation(dialog, status="failed", error_code="context_overflow")
    Dialog.objects.filter(pk=dialog.pk).update(answer_due=False, handled_seq=dialog.wake_seq, paused_by="failure")
    dialog.refresh_from_db()
    return dialog


def test_it_records_compacts_and_asks_again(alice: User, overflowed: Dialog) -> None:
    before = estimated(overflowed)

    run = report_and_continue(dialog=overflowed, by=alice)
    perform(run.pk, embedder="static")

    overflowed.refresh_from_db()
    assert ContextEvent.objects.get(code="REPORTED").run == run
    assert CompactionRun.objects.get().status == "applied"
    assert estimated(overflowed) < before
    assert overflowed.answer_due
    assert overflowed.current_leaf is not None
    assert overflowed.current_leaf.content == "And now?"


def test_nobody_is_asked_to_review_it(alice: User, overflowed: Dialog) -> None:
    CompactionDisplay.objects.update_or_create(user=alice, defaults={"review_drafts": True})

    assert not report_and_continue(dialog=overflowed, by=alice).is_draft


def test_it_changes_no_estimate(alice: User, overflowed: Dialog) -> None:
    before = estimated(overflowed)

    report_and_continue(dialog=overflowed, by=alice)

    assert not LlmCalibration.objects.exists()
    assert estimated(overflowed) == before


def test_a_cancelled_compaction_resumes_nothing(alice: User, overflowed: Dialog) -> None:
    run = report_and_continue(dialog=overflowed, by=alice)

    cancel_run(dialog=overflowed, run_id=run.pk)

    overflowed.refresh_from_db()
    assert not overflowed.answer_due


def test_a_compaction_by_hand_alone_resumes_nothing(alice: User, overflowed: Dialog) -> None:
    run = report_and_continue(dialog=overflowed, by=alice)
    ContextEvent.objects.all().delete()

    perform(run.pk, embedder="static")

    overflowed.refresh_from_db()
    assert not overflowed.answer_due


def test_another_failure_is_no_overflow(alice: User, overflowed: Dialog) -> None:
    Generation.objects.update(error_code="rate_limited")

    with pytest.raises(DialogError):
        report_and_continue(dialog=overflowed, by=alice)

    assert not ContextEvent.objects.exists()
    assert not CompactionRun.objects.exists()
