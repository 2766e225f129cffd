"""A compaction run from its wish to its end: who may work at it, and that nobody's late word counts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dialogs.common.errors import DialogBusy
from dialogs.compaction import work
from dialogs.compaction.reads.compaction import neglected_runs
from dialogs.compaction.work import perform
from dialogs.compaction.writes.compaction import (
    cancel_run,
    claim_run,
    finish_run,
    queue_run,
    renew,
    report,
)
from dialogs.compaction.writes.manual_compaction import request, reset
from dialogs.context.estimate import present_context
from dialogs.llms.guard import by_limit
from dialogs.models import Course, Dialog, Message, ViewChange
from dialogs.models.message import MessageOrigin, Role
from dialogs.transcript.writes.dialog_row import add_message
from dialogs.turns.writes.messages import choose_branch
from health.models import CompactionRun, ContextEvent
from tests.dialogs.compacting_builders import a_history, estimated, guard

pytestmark = pytest.mark.django_db(transaction=True)
Status = CompactionRun.Status


@pytest.fixture
def full(dialog: Dialog) -> Dialog:
    """A dialog that is over its limit."""
    guard(dialog)
    a_history(dialog, pairs=16)
    return dialog


def queued(dialog: Dialog) -> CompactionRun:
    return queue_run(dialog, guard=by_limit(dialog), trigger="pre_request")


def expire(run: CompactionRun) -> None:
    CompactionRun.objects.filter(pk=run.pk).update(claimed_until=timezone.now() - timedelta(seconds=1))


def at_the_first_strategy(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]) -> None:
    """Something happens in the middle of the run."""
    real = work._Starting.announced
    done: list[bool] = []

    def announced(self: work._Starting) -> object:
        if not done:
            done.append(True)
            happens()
        return real(self)

    monkeypatch.setattr(work._Starting, "announced", announced)


def said_later(dialog: Dialog, content: str) -> Message:
    dialog.refresh_from_db()
    message = add_message(
        dialog, role=Role.USER, origin=MessageOrigin.TYPED, content=content, parent=dialog.current_leaf
    )
    dialog.save()
    return message


def test_an_applied_run_is_the_head_of_its_course_with_its_steps_and_delivered_twice_it_is_done_once(
    full: Dialog,
) -> None:
    run = queued(full)

    assert perform(run.pk, embedder="static")
    assert not perform(run.pk, embedder="static")

    assert Course.objects.get().head_run_id == run.pk
    assert ViewChange.objects.get().after_id == run.pk
    assert estimated(full) <= 2600
    steps = CompactionRun.objects.get().steps
    assert (steps[0]["phase"], steps[-1]["phase"]) == ("detection", "success")
    assert all(step["ms"] >= 0 for step in steps)


def test_there_is_one_run_at_a_time_and_one_worker_has_it(full: Dialog) -> None:
    run = queued(full)

    with pytest.raises(DialogBusy):
        queued(full)
    assert claim_run(run.pk) is not None
    assert claim_run(run.pk) is None


@pytest.mark.parametrize("until", [-timedelta(seconds=1), timedelta(hours=1)], ids=["ran-out", "the-clock-went-back"])
@pytest.mark.parametrize("is_cancelled", [False, True], ids=["taken-up-by-another", "cancelled-at-once"])
def test_a_claim_whose_worker_died_keeps_nobody_out(full: Dialog, until: timedelta, is_cancelled: bool) -> None:
    """Else nobody took the run up until the clock had caught up, and the dialog could not go on."""
    run = queued(full)
    claim_run(run.pk)
    CompactionRun.objects.update(claimed_until=timezone.now() + until)
    run.refresh_from_db()
    assert run.is_overdue
    assert neglected_runs() == [run.pk]

    if is_cancelled:
        cancel_run(dialog=full, run_id=run.pk)
    else:
        assert perform(run.pk, embedder="static")

    assert CompactionRun.objects.get().status == (Status.CANCELLED if is_cancelled else Status.APPLIED)


def test_a_clock_that_is_a_little_ahead_elsewhere_is_believed(full: Dialog) -> None:
    run = queued(full)
    claim_run(run.pk)
    CompactionRun.objects.update(claimed_until=timezone.now() + timedelta(minutes=5))

    assert neglected_runs() == []
    assert claim_run(run.pk) is None


def test_a_worker_that_was_thought_dead_changes_nothing(full: Dialog) -> None:
    run = queued(full)
    dead = claim_run(run.pk)
    assert dead is not None
    expire(run)
    perform(run.pk, embedder="static")
    view = CompactionRun.objects.get().view

    renew(dead)
    assert not report(dead, phase="summarize_old")
    assert finish_run(dead, status=Status.APPLIED, facts={"view": []}) is None
    assert CompactionRun.objects.get().view == view
    assert ViewChange.objects.count() == 1


def codes_of(run: CompactionRun, **ended: Any) -> list[str]:
    """What is recorded of it when it ends like this."""
    claim = claim_run(run.pk)
    assert claim is not None
    finish_run(claim, **ended)
    return list(ContextEvent.objects.filter(run=run).values_list("code", flat=True))


@pytest.mark.parametrize(("by_hand", "codes"), [(False, ["TOKEN_LIMIT_EXCEEDED"]), (True, [])])
def test_only_the_guards_own_run_exceeds_the_limit(full: Dialog, by_hand: bool, codes: list[str]) -> None:
    run = request(dialog=full, by=full.owner) if by_hand else queued(full)

    assert codes_of(run, status=Status.FAILED, facts={"code": "TOKEN_LIMIT_EXCEEDED"}) == codes


@pytest.mark.parametrize(("by_hand", "codes"), [(False, ["RECOVERY_TRIGGERED"]), (True, [])])
def test_a_fresh_start_is_a_recovery_where_nobody_asked_for_it(full: Dialog, by_hand: bool, codes: list[str]) -> None:
    run = reset(dialog=full, by=full.owner)
    if not by_hand:
        CompactionRun.objects.update(requested_by=None)

    assert codes_of(run, status=Status.APPLIED, facts={"view": []}) == codes


def test_a_claim_that_is_renewed_is_not_taken(full: Dialog) -> None:
    run = queued(full)
    claim = claim_run(run.pk)
    assert claim is not None
    expire(run)

    renew(claim)

    assert claim_run(run.pk) is None


def test_what_is_said_meanwhile_follows_the_view(full: Dialog, monkeypatch: pytest.MonkeyPatch) -> None:
    run = queued(full)
    at_the_first_strategy(monkeypatch, lambda: said_later(full, "And one more thing."))

    perform(run.pk, embedder="static")

    full.refresh_from_db()
    assert CompactionRun.objects.get().status == Status.APPLIED
    assert present_context(full).pieces[-1].content == "And one more thing."


def test_a_branch_that_is_left_meanwhile_is_not_changed(full: Dialog, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Message.objects.order_by("seq")[4]
    other = add_message(full, role=Role.USER, origin=MessageOrigin.TYPED, content="Rather this.", parent=first.parent)
    full.current_leaf = Message.objects.exclude(pk=other.pk).latest("seq")
    full.save()
    run = queued(full)
    at_the_first_strategy(monkeypatch, lambda: choose_branch(dialog=full, message=other))

    perform(run.pk, embedder="static")

    ended = CompactionRun.objects.get()
    assert ended.status == Status.SKIPPED
    assert "another way" in ended.reason
    assert Course.objects.get().head_run_id is None


def test_a_person_cancels_a_run_in_its_middle(full: Dialog, monkeypatch: pytest.MonkeyPatch) -> None:
    run = queued(full)
    at_the_first_strategy(monkeypatch, lambda: cancel_run(dialog=full, run_id=run.pk))
    before = [piece.content for piece in present_context(full).pieces]

    perform(run.pk, embedder="static")

    assert CompactionRun.objects.get().status == Status.CANCELLED
    assert [piece.content for piece in present_context(full).pieces] == before


@pytest.mark.skipif(not connection.features.has_select_for_update, reason="SQLite has one writer at a time")
def test_who_ends_a_run_locks_its_dialog_first_as_who_cancels_it_does(
    full: Dialog,
) -> None:
    claim = claim_run(queued(full).pk)
    assert claim is not None

    with CaptureQueriesContext(connection) as asked:
        finish_run(claim, status=Status.CANCELLED, facts={})

    locking = [query["sql"] for query in asked.captured_queries if "FOR UPDATE" in query["sql"]]
    assert [Dialog._meta.db_table in locking[0], CompactionRun._meta.db_table in locking[1]] == [True, True]


def test_a_fault_inside_ends_the_run_and_leaves_everything_as_it_was(
    full: Dialog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_args: object, **_options: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(work, "material", broken)
    run = queued(full)

    perform(run.pk, embedder="static")

    ended = CompactionRun.objects.get()
    assert (ended.status, ended.code) == (Status.FAILED, "BREAKER_FAILED")
    assert Course.objects.get().head_run_id is None
