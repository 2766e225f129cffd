"""Changes of a course's view: applied, undone, redone. The head changes by compare-and-swap, with a ViewChange."""

from __future__ import annotations

from collections.abc import Container

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from dialogs.common.broadcast import compaction_on_commit
from dialogs.common.errors import DialogBusy, DialogError
from dialogs.context.estimate import present_tokens
from dialogs.models import Course, Dialog, Message, MessageMark, ViewChange
from dialogs.transcript.model_view import Lineage, holding, lineage_of, load
from dialogs.transcript.reads.path import course_branch, is_behind
from dialogs.transcript.writes.dialog_row import idle, lock, save
from dialogs.turns.reads.turns import dialog_to_drive
from dialogs.turns.writes.remediation import lift
from health.models import CompactionRun, PreparedPruning

Status = CompactionRun.Status


def apply_run(row: Dialog, run: CompactionRun, *, by: User | None = None) -> bool:
    """Compare and swap: the view in force must still be the run's parent, and its leaf on the branch."""
    # What seems still to come was made before the clock went back.
    since = {"changed_at__gt": run.queued_at, "changed_at__lte": timezone.now()}
    moved_since = ViewChange.objects.filter(course=run.course_id, **since)
    if not is_on_branch(row, run) or moved_since.exists():
        return False
    moved = Course.objects.filter(pk=run.course_id, head_run_id=run.parent_run_id).update(head_run=run)
    if not moved:
        return False
    ViewChange.objects.create(
        course_id=run.course_id, before_id=run.parent_run_id, after=run, why=ViewChange.Why.APPLIED, by=by
    )
    # The prepared pruning was for the view that held until now: undoing this run does not bring it back.
    PreparedPruning.objects.filter(dialog=row.pk).delete()
    lift(row, Course.objects.get(pk=run.course_id))
    return True


def is_on_branch(row: Dialog, run: CompactionRun) -> bool:
    return row.current_leaf is not None and is_behind(run, row.current_leaf)


def draft_of(row: Dialog, run_id: int) -> CompactionRun:
    """The preview of a compaction, locked. Raises DialogError where it was decided upon, or never was."""
    run = CompactionRun.objects.select_for_update().filter(dialog=row, pk=run_id, status=Status.DRAFT).first()
    if run is None:
        raise DialogError(_("This preview is no longer there."))
    return run


@transaction.atomic
def apply_draft(*, dialog: Dialog, run_id: int, by: User | None) -> None:
    """Put a draft into force. Raises DialogError if the dialog has changed its branch or view."""
    row = lock(dialog)
    run = draft_of(row, run_id)
    if not apply_run(row, run, by=by):
        raise DialogError(_("The dialog went another way meanwhile. Compact it again."))
    run.status, run.phase = Status.APPLIED, "success"
    run.save(update_fields=["status", "phase"])
    save(row)
    compaction_on_commit(row.pk, run_id)


@transaction.atomic
def undo(*, dialog: Dialog, run_id: int, by: User) -> None:
    """Show the model the earlier view again, with all that was said since. Only the view that holds can be undone.

    The head stays where it is while it leads to the view of another branch, which an edit left behind.
    """
    row = resting(lock(dialog))
    course, lineage = _course(row)
    run = CompactionRun.objects.filter(dialog=row, pk=run_id).first()
    if run is not None and run.status == Status.UNDONE:
        raise DialogError(_("This compaction is undone already."))
    if course is None or run is None or not lineage.may_undo(run_id):
        raise DialogError(_("Only the newest compaction can be undone: undo later ones first."))
    run.status = Status.UNDONE
    run.save(update_fields=["status"])
    course.head_run_id = run.parent_run_id if course.head_run_id == run_id else course.head_run_id
    course.guard_held = True
    _let_go(run, lineage.said)
    course.save(update_fields=["head_run", "guard_held"])
    run.tokens_now = present_tokens(dialog_to_drive(row.pk)) + run.reserve_tokens
    run.save(update_fields=["tokens_now"])
    _record(row, lineage_of(course, lineage.said), run, before=run_id, why=ViewChange.Why.UNDONE, by=by)


@transaction.atomic
def redo(*, dialog: Dialog, run_id: int, by: User) -> None:
    """Put an undone view into force again, if its parent is in force."""
    row = resting(lock(dialog))
    run = CompactionRun.objects.filter(dialog=row, pk=run_id).first()
    if run is not None and run.status == Status.APPLIED:
        raise DialogError(_("This compaction is not undone."))
    if run is None or run.status != Status.UNDONE or not is_on_branch(row, run):
        raise DialogError(_("This compaction cannot be done again."))
    course, lineage = _course(row)
    if course is None or not lineage.may_redo(run_id):
        raise DialogError(_("Another compaction holds now: undo that one first."))
    run.status = Status.APPLIED
    run.save(update_fields=["status"])
    course.head_run_id = course.head_run_id if lineage.is_kept(run_id) else run_id
    course.guard_held = False
    for pk in _brought_by(run, lineage.said):
        pin(pk)
    course.save(update_fields=["head_run", "guard_held"])
    _record(row, lineage_of(course, lineage.said), run, before=lineage.holds, why=ViewChange.Why.REDONE, by=by)


def _brought_by(run: CompactionRun, said: Container[int]) -> list[int]:
    """The messages that a person brought back as they were said, with which this view was made. `said`: the branch."""
    before = holding(run.parent_run, said)
    if run.chain or run.trigger != CompactionRun.Trigger.MANUAL or before is None:
        return []
    was, now = (
        {entry.message_id for entry in load(view) if entry.message_id and entry.content is None}
        for view in (before.view, run.view)
    )
    known = Message.objects.filter(pk__in=now - was, seq__lte=before.through_seq)
    return list(known.values_list("pk", flat=True))


def pin(message_id: int) -> None:
    """Pin what a person brings back, unless it was marked to stay already."""
    mark = MessageMark.objects.filter(message_id=message_id).first() or MessageMark(message_id=message_id)
    if not mark.pinned and mark.priority != MessageMark.Priority.P1:
        mark.pinned = True
        mark.save()


def _let_go(run: CompactionRun, said: Container[int]) -> None:
    """Take back the pins that came with this view. What was marked before it was made stays marked."""
    pins = MessageMark.objects.filter(message_id__in=_brought_by(run, said), pinned=True, marked_at__gt=run.queued_at)
    pins.filter(priority=None).delete()
    pins.update(pinned=False)


def _course(row: Dialog) -> tuple[Course | None, Lineage]:
    """The course of the branch that is shown, with its lineage. The row is locked, so neither changes."""
    leaf = row.current_leaf
    course = Course.objects.get(pk=leaf.course_id) if leaf else None
    return course, lineage_of(course, {message.pk for message in course_branch(leaf)})


def _record(
    row: Dialog, now: Lineage, run: CompactionRun, *, before: int | None, why: ViewChange.Why, by: User
) -> None:
    """`before` is the run that held until now."""
    ViewChange.objects.create(course_id=run.course_id, before_id=before, after_id=now.holds, why=why, by=by)
    lift(row, Course.objects.get(pk=run.course_id))
    save(row)
    compaction_on_commit(row.pk, run.pk)


def resting(row: Dialog) -> Dialog:
    """The locked row of a dialog at rest: nobody uses its context now."""
    if CompactionRun.objects.filter(dialog=idle(row), status__in=(Status.QUEUED, Status.RUNNING)).exists():
        raise DialogBusy(_("A compaction is under way already. Wait for it, or cancel it."))
    return row
