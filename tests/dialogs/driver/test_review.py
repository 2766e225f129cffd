"""Who reviews summaries is asked about the guard's too: the turn waits for them, and never for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from channels.db import database_sync_to_async as in_db
from django.utils import timezone

from dialogs.compaction.reads.compaction import open_run
from dialogs.compaction.writes import manual_compaction
from dialogs.compaction.writes.view_changes import apply_draft
from dialogs.models import CompactionDisplay, Dialog, Generation
from dialogs.turns.writes.messages import request_stop
from health.models import CompactionRun
from tests.dialogs.compacting_builders import a_history, estimated, guard, long_text
from tests.dialogs.driver.conftest import Play, ask, ask_and_drive, drive_until_idle, said

pytestmark = pytest.mark.django_db(transaction=True)
Status = CompactionRun.Status


@pytest.fixture
def reviewed(dialog: Dialog) -> Dialog:
    """A guarded dialog that is too long, whose owner reviews summaries."""
    CompactionDisplay.objects.create(user=dialog.owner, review_drafts=True)
    guard(dialog)
    a_history(dialog, pairs=20)
    return dialog


def once_it_is_a_draft(act: Callable[[CompactionRun], None]) -> Callable[[], Awaitable[None]]:
    """Do this as soon as there is something to review, while the driver waits."""

    drafts = CompactionRun.objects.filter(status=Status.DRAFT).select_related("dialog")

    async def person() -> None:
        while (run := await drafts.afirst()) is None:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        await in_db(act)(run)

    return person


def run_out(run: CompactionRun) -> None:
    CompactionRun.objects.filter(pk=run.pk).update(draft_until=timezone.now() - timedelta(seconds=1))


def test_the_turn_waits_for_a_person_who_applies_it(reviewed: Dialog, play: Play) -> None:
    requests = play(said(None, "Done."))
    asked: list[int] = []

    def apply(run: CompactionRun) -> None:
        asked.append(len(requests()))
        apply_draft(dialog=run.dialog, run_id=run.pk, by=run.dialog.owner)

    ask(reviewed, "What does the rotor show?")
    drive_until_idle(reviewed, beside=once_it_is_a_draft(apply))

    run = CompactionRun.objects.get()
    assert asked == [0]
    assert (run.status, run.trigger) == (Status.APPLIED, "pre_request")
    assert len(requests()[0]["messages"]) < 33


def test_a_draft_has_half_a_minute_and_then_a_person_who_is_away_has_said_yes(reviewed: Dialog, play: Play) -> None:
    left: list[float] = []

    def look(run: CompactionRun) -> None:
        assert run.draft_until is not None
        assert run.finished_at is not None
        left.append((run.draft_until - run.finished_at).total_seconds())
        run_out(run)

    requests = play(said(None, "Done."))
    ask(reviewed)
    drive_until_idle(reviewed, beside=once_it_is_a_draft(look))

    assert left == [pytest.approx(30, abs=0.5)]
    assert CompactionRun.objects.get().status == Status.APPLIED
    assert len(requests()) == 1


def test_what_is_discarded_is_not_made_again_for_this_request(reviewed: Dialog, play: Play) -> None:
    guard(reviewed, limit=int(estimated(reviewed) * 1.1))
    requests = play(said(None, "Done."))

    ask(reviewed)
    drive_until_idle(
        reviewed, beside=once_it_is_a_draft(lambda run: manual_compaction.discard(dialog=run.dialog, run_id=run.pk))
    )

    run = CompactionRun.objects.get()
    assert (run.status, run.why["code"]) == (Status.SKIPPED, "discarded")
    assert len(requests()[0]["messages"]) == 42


def test_a_request_that_does_not_fit_without_it_is_given_up(reviewed: Dialog, play: Play) -> None:
    requests = play(said(None, "Done."))

    ask(reviewed)
    drive_until_idle(
        reviewed, beside=once_it_is_a_draft(lambda run: manual_compaction.discard(dialog=run.dialog, run_id=run.pk))
    )

    assert requests() == []
    failed = Generation.objects.get()
    assert failed.error_message.startswith("The request needs ≈")
    assert failed.why["code"] == "not_helped"
    assert failed.why["args"]["other"]["code"] == "discarded"


def test_who_edits_is_waited_for_but_not_for_ever(reviewed: Dialog, play: Play) -> None:
    until: list[Any] = []

    def edit(run: CompactionRun) -> None:
        manual_compaction.edit_draft(dialog=run.dialog, run_id=run.pk, texts={})
        until.append(CompactionRun.objects.get().draft_until)
        run_out(run)

    play(said(None, "Done."))
    ask(reviewed)
    drive_until_idle(reviewed, beside=once_it_is_a_draft(edit))

    assert until[0] > timezone.now() + timedelta(minutes=4)
    assert CompactionRun.objects.get().status == Status.APPLIED


def test_a_stopped_turn_takes_its_draft_along(reviewed: Dialog, play: Play) -> None:
    requests = play(said(None, "Done."))

    ask(reviewed)
    drive_until_idle(reviewed, beside=once_it_is_a_draft(lambda run: request_stop(dialog=run.dialog)))

    assert CompactionRun.objects.get().status == Status.CANCELLED
    assert requests() == []


def test_an_answer_that_was_cut_is_not_kept_waiting(dialog: Dialog, play: Play) -> None:
    CompactionDisplay.objects.create(user=dialog.owner, review_drafts=True)
    guard(dialog, window=4000)
    a_history(dialog, pairs=11)
    play({"text": [f"{word} " for word in long_text(3, sentences=90).split()], "usage": None}, said(None, "All."))

    ask_and_drive(dialog, "Tell me everything.")

    run = CompactionRun.objects.get()
    assert (run.trigger, run.is_draft, run.status) == ("stream", False, Status.APPLIED)


def test_a_draft_of_the_guards_is_under_way_and_one_by_hand_is_not(dialog: Dialog) -> None:
    ask(dialog)
    leaf = dialog.current_leaf
    assert leaf is not None
    facts: dict[str, Any] = {"dialog": dialog, "course": leaf.course, "leaf": leaf, "turn": 1, "through_seq": 1}
    until = timezone.now() + timedelta(seconds=30)
    CompactionRun.objects.create(**facts, trigger="manual", status=Status.DRAFT, limit_tokens=1, draft_until=until)
    CompactionRun.objects.create(**facts, trigger="pre_request", status=Status.DRAFT, limit_tokens=1)
    assert open_run(dialog.pk) is None

    run = CompactionRun.objects.create(
        **facts, trigger="pre_request", status=Status.DRAFT, limit_tokens=1, draft_until=until
    )

    assert open_run(dialog.pk) == run
