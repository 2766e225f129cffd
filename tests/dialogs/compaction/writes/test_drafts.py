"""Previews: their words may be edited, they may be discarded, and in time they apply themselves."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from dialogs.common.errors import DialogError
from dialogs.compaction.work import perform
from dialogs.compaction.writes.manual_compaction import edit_draft, request
from dialogs.compaction.writes.view_changes import apply_draft
from dialogs.context.estimate import present_context
from dialogs.models import Dialog, Message
from dialogs.sweeper import sweep
from dialogs.turns.reads.turns import dialog_to_drive
from dialogs.turns.writes.messages import edit_message, post_message
from health.models import CompactionRun
from tests.builders import an_answer
from tests.dialogs.compacting_builders import a_history

Status = CompactionRun.Status
WORDS = "Alice and the agent read sixty meters; all were as expected."


@pytest.fixture
def draft(alice: User, dialog: Dialog) -> CompactionRun:
    """A preview of a compaction of a long history, with at least one text that compaction wrote."""
    a_history(dialog, pairs=12)
    run = request(dialog=dialog, by=alice, preview=True)
    perform(run.pk, embedder="static")
    run.refresh_from_db()
    assert run.status == Status.DRAFT
    return run


def written(run: CompactionRun) -> int:
    """The place of the first text that compaction wrote."""
    return next(at for at, entry in enumerate(run.view) if "message" not in entry)


def run_out(run: CompactionRun) -> None:
    CompactionRun.objects.filter(pk=run.pk).update(draft_until=timezone.now() - timedelta(seconds=1))


def test_the_edited_words_are_what_is_sent(alice: User, dialog: Dialog, draft: CompactionRun) -> None:
    edit_draft(dialog=dialog, run_id=draft.pk, texts={written(draft): WORDS})
    apply_draft(dialog=dialog, run_id=draft.pk, by=alice)

    pieces = present_context(dialog_to_drive(dialog.pk)).pieces
    assert WORDS in [piece.content for piece in pieces]


def test_the_estimate_follows_the_words(dialog: Dialog, draft: CompactionRun) -> None:
    edit_draft(dialog=dialog, run_id=draft.pk, texts={written(draft): WORDS})
    short = CompactionRun.objects.get().estimated_after
    edit_draft(dialog=dialog, run_id=draft.pk, texts={written(draft): WORDS * 10})
    long = CompactionRun.objects.get().estimated_after

    assert short is not None
    assert long is not None
    assert long > short + 50


def test_what_was_said_cannot_be_edited(dialog: Dialog, draft: CompactionRun) -> None:
    said = next(at for at, entry in enumerate(draft.view) if "message" in entry)

    edit_draft(dialog=dialog, run_id=draft.pk, texts={said: "I never said that.", 9999: "Nor that."})

    assert CompactionRun.objects.get().view == draft.view


def test_an_empty_summary_is_refused(dialog: Dialog, draft: CompactionRun) -> None:
    with pytest.raises(DialogError):
        edit_draft(dialog=dialog, run_id=draft.pk, texts={written(draft): "  "})

    assert CompactionRun.objects.get().view == draft.view


def test_an_applied_view_cannot_be_edited(alice: User, dialog: Dialog, draft: CompactionRun) -> None:
    apply_draft(dialog=dialog, run_id=draft.pk, by=alice)

    with pytest.raises(DialogError):
        edit_draft(dialog=dialog, run_id=draft.pk, texts={written(draft): WORDS})


def test_a_preview_whose_time_has_run_out_applies_itself(dialog: Dialog, draft: CompactionRun) -> None:
    run_out(draft)

    sweep()

    assert CompactionRun.objects.get().status == Status.APPLIED
    assert dialog.courses.get().head_run == draft


def test_a_preview_of_before_the_clock_went_back_applies_itself(dialog: Dialog, draft: CompactionRun) -> None:
    CompactionRun.objects.filter(pk=draft.pk).update(draft_until=timezone.now() + timedelta(hours=1))

    sweep()

    assert CompactionRun.objects.get().status == Status.APPLIED


def test_a_preview_without_an_hour_waits(dialog: Dialog, draft: CompactionRun) -> None:
    sweep()

    assert CompactionRun.objects.get().status == Status.DRAFT


def test_who_edits_has_all_the_time(dialog: Dialog, draft: CompactionRun) -> None:
    run_out(draft)

    edit_draft(dialog=dialog, run_id=draft.pk, texts={})
    sweep()

    assert CompactionRun.objects.get().status == Status.DRAFT


def test_a_preview_of_another_branch_is_given_up(dialog: Dialog, draft: CompactionRun) -> None:
    dialog.refresh_from_db()
    last = Message.objects.filter(role="user").last()
    assert last is not None
    edit_message(dialog=dialog, message=last, content="Something else")
    an_answer(dialog)
    run_out(draft)

    sweep()

    given_up = CompactionRun.objects.get()
    assert given_up.status == Status.SKIPPED
    assert "another way" in given_up.reason


def test_what_is_said_meanwhile_follows_the_view(dialog: Dialog, draft: CompactionRun) -> None:
    dialog.refresh_from_db()
    post_message(dialog=dialog, content="And now?")
    run_out(draft)

    sweep()

    pieces = present_context(dialog_to_drive(dialog.pk)).pieces
    assert CompactionRun.objects.get().status == Status.APPLIED
    assert pieces[-1].content == "And now?"
