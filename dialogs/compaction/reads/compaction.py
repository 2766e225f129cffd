"""What is known of a dialog's compactions: the run that is under way, the last one, how many this turn had."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import BigIntegerField, IntegerField, Q, QuerySet, UUIDField
from django.utils import timezone

from dialogs.llms.guard import Guard
from dialogs.models import Generation, Message
from dialogs.models.message import MessageOrigin
from dialogs.transcript.reads.path import upward
from dialogs.turns.reads.turns import LARGE
from dialogs.turns.state import MAX_RESTARTS
from dominds.prepared import prepared
from health.compaction.terms.reasons import Why, from_json
from health.models import CompactionRun
from health.models.claims import AHEAD, is_over

Status = CompactionRun.Status
Trigger = CompactionRun.Trigger
OPEN = (Status.QUEUED, Status.RUNNING)
BY_THE_GUARD = (Trigger.PRE_REQUEST, Trigger.TOOL_RESULT, Trigger.STREAM)
BY_ITSELF = (*BY_THE_GUARD, Trigger.OVERFLOW)
# An answer that filled the window before a word of it was said: with thoughts, or the arguments of a call.
FILLED = "context_filled"
# The codes of generations that failed because their request was too large: refused by us, by the provider.
OVERFLOWS = ("context_compaction_failed", "compaction_off", "context_overflow", "context_filled")
# What must stay is more than the room: a compaction would find the same again.
NOTHING_TO_FREE = ("cannot_free_more", "p1_alone", "words_alone")
# A request of the guard's waits for who edits this long; each change begins it anew.
EDITING = timedelta(minutes=5)


def open_run(dialog_id: UUID) -> CompactionRun | None:
    """The run that is under way: queued, at work, or made by the guard and still looked through by a person."""
    return _open_runs(dialog_id).select_related("dialog").first()


def is_being_compacted(dialog_id: UUID) -> bool:
    """Is a run under way?"""
    return bool(_open_run_ids(dialog_id))


@prepared(UUIDField())
def _open_run_ids(dialog_id: Any) -> QuerySet[CompactionRun, Any]:
    return _open_runs(dialog_id).order_by().values_list("pk")[:1]


def _open_runs(dialog_id: UUID) -> QuerySet[CompactionRun]:
    reviewed = Q(status=Status.DRAFT, trigger__in=BY_ITSELF, draft_until__isnull=False)
    return CompactionRun.objects.filter(Q(status__in=OPEN) | reviewed, dialog_id=dialog_id)


def newest_run(dialog_id: UUID) -> CompactionRun | None:
    return CompactionRun.objects.filter(dialog_id=dialog_id).order_by("id").last()


def runs_of_turn(leaf: Message) -> list[CompactionRun]:
    """The runs that the guard began for the answer that is due now, oldest first.

    Those of another version of the message are not this request's; nor are those before a person tried again.
    """
    runs = _runs_of(leaf.dialog_id, leaf.turn)
    if not runs:
        return []
    branch = branch_of_turn(leaf)
    given_up = (
        Generation.objects.filter(prompt_leaf_id__in=branch, status=Generation.Status.FAILED, retry_at=None)
        .order_by("-id")
        .first()
    )
    here = [run for run in runs if run.leaf_id in branch]
    return [run for run in here if run.queued_at > given_up.started_at] if given_up else here


@prepared(UUIDField(), IntegerField())
def _runs_of(dialog_id: Any, turn: Any) -> QuerySet[CompactionRun]:
    begun = CompactionRun.objects.filter(dialog_id=dialog_id, turn=turn, trigger__in=BY_ITSELF)
    return begun.exclude(status=Status.CANCELLED).defer(*LARGE)


def branch_of_turn(leaf: Message) -> set[int]:
    """The messages of the leaf's turn that lead to it, itself included."""
    parents = dict(Message.objects.filter(course_id=leaf.course_id, turn=leaf.turn).values_list("pk", "parent_id"))
    return set(upward(leaf.pk, parents))


def compactions_of_request(leaf: Message, runs: Sequence[CompactionRun]) -> int:
    """How many of a turn's runs count against the answer to this message: all that were made for it, an answer that was
    cut and goes on included, but for those that a person undid."""
    request = _request_of(leaf)
    return sum(run.leaf_id in request and run.status != Status.UNDONE for run in runs)


def compactions_without_growth(runs: Sequence[CompactionRun], *, limit: int) -> int:
    """How many of a turn's runs followed another although the context had grown by less than a tenth of the limit."""
    return sum(
        (later.estimated_before or 0) - (earlier.estimated_after or 0) < limit / 10 for earlier, later in pairwise(runs)
    )


def _request_of(leaf: Message) -> set[int]:
    """The message that is answered, and where it asks to go on with a cut answer, the one that this one answers."""
    found, at = {leaf.pk}, leaf
    while at.origin == MessageOrigin.CONTINUATION and at.parent and at.parent.parent:
        at = at.parent.parent
        found.add(at.pk)
    return found


def may_compact(leaf: Message) -> bool:
    """May the answer to this message be cut for a compaction? At most three times, and neither after one from this very
    message that freed nothing, nor where no compaction followed the last cut: it would be asked and cut without end."""
    if _was_cut_for_nothing(leaf):
        return False
    if not CompactionRun.objects.filter(dialog_id=leaf.dialog_id, turn=leaf.turn).exists():
        return True
    runs, request = runs_of_turn(leaf), _request_of(leaf)
    newest = runs[-1] if runs else None
    in_vain = newest is not None and newest.leaf_id == leaf.pk and newest.status not in (Status.APPLIED, Status.UNDONE)
    return max(compactions_of_request(leaf, runs), len(request) - 1) < MAX_RESTARTS and not in_vain


def _was_cut_for_nothing(leaf: Message) -> bool:
    tries = Generation.objects.filter(prompt_leaf=leaf).exclude(status=Generation.Status.RUNNING)
    last = tries.only("error_code", "started_at").order_by("-pk").first()
    if last is None or last.error_code != FILLED:
        return False
    return not CompactionRun.objects.filter(dialog_id=leaf.dialog_id, queued_at__gte=last.started_at).exists()


def is_vain(run: CompactionRun | None, *, leaf: Message, tokens: int, limit: int) -> bool:
    """Did this run gain nothing, and has the context grown since by less than a tenth of the limit?

    Or did it come to nothing for this very message, as where a person discarded what it made? A run for a request that
    fitted, or that was only noted, says nothing of one that does not fit.
    """
    if run is None or run.status not in (Status.SKIPPED, Status.FAILED):
        return False
    if run.leaf_id == leaf.pk or run.estimated_before is None:
        return run.leaf_id == leaf.pk
    why = from_json(run.why)
    is_noted = why is not None and why.why is Why.STUCK
    if tokens > limit and (is_noted or run.estimated_before <= limit):
        return False
    gained = run.estimated_after is not None and run.estimated_after < 0.9 * run.estimated_before
    return not gained and tokens < run.estimated_before + limit / 10


def has_freed_all(run: CompactionRun | None, *, tokens: int, guard: Guard) -> bool:
    """Was this run applied without reaching its goal, and has the context grown since by less than a tenth of the
    limit? Another would free nothing."""
    after = run.estimated_after if run and run.status == Status.APPLIED else None
    return after is not None and after > guard.config.goal * guard.limit and tokens < after + guard.limit / 10


def last_run_of_course(course_id: int) -> CompactionRun | None:
    """The newest that the guard began and nobody cancelled."""
    return _last_of_course.first(course_id)


@prepared(BigIntegerField())
def _last_of_course(course_id: Any) -> QuerySet[CompactionRun]:
    runs = CompactionRun.objects.filter(course_id=course_id, trigger__in=BY_ITSELF).exclude(status=Status.CANCELLED)
    return runs.defer(*LARGE).order_by("-pk")[:1]


def neglected_runs() -> list[int]:
    """Runs that nobody has taken up in time, and those whose worker died."""
    now = timezone.now()
    late = Q(status=Status.QUEUED, queued_at__lt=now - timedelta(seconds=2 * settings.DOMINDS_COMPACTION_WAIT_SECONDS))
    left = Q(status=Status.RUNNING) & is_over()
    return list(CompactionRun.objects.filter(late | left).values_list("pk", flat=True))


def overdue_drafts() -> list[CompactionRun]:
    """Previews whose time to review has run out: they apply themselves."""
    drafts = CompactionRun.objects.filter(status=Status.DRAFT, draft_until__isnull=False).select_related("dialog")
    return [run for run in drafts if is_overdue(run)]


def is_overdue(run: CompactionRun) -> bool:
    if run.draft_until is None:
        return False
    # One that lasts longer than any does is from before the clock went back.
    return not timezone.now() < run.draft_until <= timezone.now() + EDITING + AHEAD


def can_be_reported(failed: Generation) -> bool:
    """Whether a compaction could help an answer that failed because the context was too large."""
    return failed.error_code in OVERFLOWS and failed.why.get("code") not in NOTHING_TO_FREE
