"""All writes of a compaction run, from queueing to its end. Who works at it holds a claim with a fencing number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from dialogs.common.broadcast import compaction_on_commit
from dialogs.common.errors import DialogBusy, DialogError
from dialogs.common.schedule import compact_on_commit, drive_on_commit
from dialogs.compaction.writes.view_changes import apply_run
from dialogs.llms.guard import Guard
from dialogs.models import Course, Dialog, Message
from dialogs.models.dialog import PausedBy
from dialogs.transcript.writes.dialog_row import lock, save, want_answer
from dialogs.turns.writes.events import Code, log
from health.compaction.terms.reasons import Reason, Why, columns_of, from_json
from health.models import CompactionRun, ContextEvent
from health.models.claims import claimed_until, is_over

Status = CompactionRun.Status
Trigger = CompactionRun.Trigger
# How long a person may look through what a run has made before it applies itself.
REVIEW_SECONDS = 30


@dataclass(frozen=True)
class RunClaim:
    """The right to work at one run until the claim runs out."""

    run_id: int
    token: int


def queue_run(
    row: Dialog,
    *,
    guard: Guard,
    trigger: str,
    requested_by: User | None = None,
    focus: str = "",
    up_to: Message | None = None,
    is_draft: bool = False,
    draft_seconds: int | None = None,
) -> CompactionRun:
    """Queue a compaction of the current branch. The caller holds the row's lock. Raises DialogBusy."""
    leaf = row.current_leaf
    if leaf is None:
        raise DialogError(_("There is nothing to compact yet."))
    run = new_run(row, leaf, guard, trigger)
    run.requested_by, run.focus, run.up_to_seq = requested_by, focus.strip(), up_to.seq if up_to else None
    run.is_draft = is_draft
    run.draft_until = timezone.now() + timedelta(seconds=draft_seconds) if draft_seconds else None
    try:
        with transaction.atomic():
            run.save()
    except IntegrityError as error:
        raise DialogBusy(_("A compaction is under way already. Wait for it, or cancel it.")) from error
    save(row)
    compact_on_commit(run.pk)
    compaction_on_commit(row.pk, run.pk)
    return run


def new_run(row: Dialog, leaf: Message, guard: Guard, trigger: str) -> CompactionRun:
    return run_at(
        row,
        leaf,
        trigger=trigger,
        chain=list(guard.chain),
        limit_tokens=guard.limit,
        reserve_tokens=guard.reserve,
        limit_trace=guard.traced(),
        phase="detection",
    )


def run_at(row: Dialog, leaf: Message, **recorded: Any) -> CompactionRun:
    """A run over all up to `leaf`, after the one in force; not saved. `recorded` are further columns."""
    course = Course.objects.get(pk=leaf.course_id)
    return CompactionRun(
        dialog=row,
        course=course,
        parent_run_id=course.head_run_id,
        leaf=leaf,
        turn=leaf.turn,
        through_seq=leaf.seq,
        **recorded,
    )


def skip_run(row: Dialog, *, guard: Guard, trigger: str, why: Reason, tokens: int) -> None:
    """Record a run as skipped, since what it would free is known. The caller holds the row's lock."""
    if row.current_leaf is None:
        return
    run = new_run(row, row.current_leaf, guard, trigger)
    run.status, run.phase, run.finished_at = Status.SKIPPED, str(Status.SKIPPED), timezone.now()
    run.reason, run.why = str(why), why.as_json()
    run.estimated_before = run.estimated_after = tokens
    run.save()
    log(Code.RUN_SKIPPED, row, run=run, estimated=tokens, limit=guard.limit, trigger=trigger)
    save(row)
    compaction_on_commit(row.pk, run.pk)


@transaction.atomic
def claim_run(run_id: int) -> RunClaim | None:
    """Take a run that is queued, or that its worker left. None when another has it or it is over."""
    free = Q(status=Status.QUEUED) | (Q(status=Status.RUNNING) & is_over())
    taken = CompactionRun.objects.filter(free, pk=run_id).update(
        status=Status.RUNNING,
        claim_token=F("claim_token") + 1,
        claimed_until=claimed_until(),
        started_at=timezone.now(),
        steps=[],
    )
    if not taken:
        return None
    run = CompactionRun.objects.get(pk=run_id)
    compaction_on_commit(run.dialog_id, run_id)
    return RunClaim(run_id, run.claim_token)


def _held(claim: RunClaim):  # type: ignore[no-untyped-def]  # a QuerySet, whose type needs the manager's
    return CompactionRun.objects.filter(pk=claim.run_id, claim_token=claim.token, status=Status.RUNNING)


def renew(claim: RunClaim) -> None:
    _held(claim).update(claimed_until=claimed_until())


@transaction.atomic
def report(claim: RunClaim, **changes: Any) -> bool:
    """Keep how far it is and show it. False when it is no longer ours to work at, or a person cancelled it."""
    if not _held(claim).filter(cancel_requested=False).update(claimed_until=claimed_until(), **changes):
        return False
    dialog_id = CompactionRun.objects.values_list("dialog_id", flat=True).get(pk=claim.run_id)
    compaction_on_commit(dialog_id, claim.run_id)
    return True


@transaction.atomic
def finish_run(claim: RunClaim, *, status: str, facts: Mapping[str, Any]) -> CompactionRun | None:
    """Record how it ended; apply what it made, unless the branch it was made from is no longer shown."""
    held = _held(claim).select_related("dialog").first()
    if held is None:
        return None
    # The dialog first, as whoever cancels a run does: two that lock them in two orders wait for each other.
    row = lock(held.dialog)
    run = _held(claim).select_for_update().first()
    if run is None:
        return None
    for name, value in facts.items():
        setattr(run, name, value)
    run.finished_at = timezone.now()
    if status == Status.APPLIED and run.is_draft:
        status = Status.DRAFT
        if run.draft_until:
            # The reviewer has the whole time from the moment on when there is something to review.
            run.draft_until += run.finished_at - run.queued_at
    if status == Status.APPLIED and not apply_run(row, run):
        status, went = Status.SKIPPED, Reason(Why.WENT_ANOTHER_WAY)
        run.reason, run.why = str(went), went.as_json()
    run.status, run.phase = status, _last_phase(run, status)
    run.save()
    _log(row, run)
    save(row)
    resume_after(row, run)
    compaction_on_commit(row.pk, run.pk)
    return run


def _last_phase(run: CompactionRun, status: str) -> str:
    if status == Status.APPLIED:
        return "handover" if run.recovered else "success"
    return str(status)


def _log(row: Dialog, run: CompactionRun) -> None:
    for code in _codes(run):
        log(code, row, run=run, estimated=run.estimated_before, limit=run.limit_tokens, trigger=run.trigger)
    for why in filter(None, map(from_json, run.warnings)):
        if why.why is Why.RESULT_TOO_LARGE:
            log(Code.TOKEN_LIMIT_EXCEEDED, row, run=run, limit=run.limit_tokens, **columns_of(why))


def _codes(run: CompactionRun) -> Iterator[str]:
    """The codes of the events to log. Recovery: no strategy sufficed, or it was configured.

    A person's run that fails exceeds only the limit that it was given.
    """
    by_itself = run.requested_by_id is None
    if run.code in Code.values and (by_itself or run.code != Code.TOKEN_LIMIT_EXCEEDED):
        yield run.code
    if run.recovered:
        yield Code.BREAKER_FAILED
    if run.recovered or (by_itself and run.began_afresh):
        yield Code.RECOVERY_TRIGGERED
    if run.status == Status.SKIPPED:
        yield Code.RUN_SKIPPED


@transaction.atomic
def cancel_run(*, dialog: Dialog, run_id: int) -> None:
    """Ask whoever works at it to stop. A draft ends at once, and so does a run at which nobody works: not yet, or no
    longer, as its worker died."""
    row, now = lock(dialog), timezone.now()
    runs = CompactionRun.objects.filter(dialog=row, pk=run_id)
    left = Q(status__in=(Status.QUEUED, Status.DRAFT)) | (Q(status=Status.RUNNING) & is_over())
    ended = runs.filter(left).update(status=Status.CANCELLED, phase=Status.CANCELLED, finished_at=now)
    if not ended:
        runs.filter(status=Status.RUNNING).update(cancel_requested=True)
    row.llm_after = None
    save(row, "llm_after")
    compaction_on_commit(row.pk, run_id)


@transaction.atomic
def fail_run(*, dialog: Dialog, run_id: int) -> None:
    """End a run that cannot be made, whoever has it: what waits for it goes on without it."""
    row = lock(dialog)
    left = CompactionRun.objects.filter(dialog=row, pk=run_id, status__in=(Status.QUEUED, Status.RUNNING))
    left.update(status=Status.FAILED, phase=Status.FAILED, finished_at=timezone.now())
    save(row)
    compaction_on_commit(row.pk, run_id)


def resume_after(row: Dialog, run: CompactionRun) -> None:
    """After a fresh start that holds; after a report however the run ended, unless it was cancelled or the person has
    gone on meanwhile."""
    if run.began_afresh:
        _out_of_a_circle(row)
    _change_llm(row, run)
    if run.trigger != CompactionRun.Trigger.MANUAL or run.status == CompactionRun.Status.CANCELLED:
        return
    report = ContextEvent.objects.filter(run=run, code=ContextEvent.Code.REPORTED).first()
    if report is None or row.is_busy or row.trashed_at or row.current_leaf_id != run.leaf_id:
        return
    row.current_leaf = Message.objects.get(dialog=row, pk=report.facts["message"])
    row.paused_by = PausedBy.NOBODY
    want_answer(row)


def _change_llm(row: Dialog, run: CompactionRun) -> None:
    """To the smaller LLM that the compaction was made for. Where nothing came of it, the present one stays."""
    if row.llm_after is None or run.trigger != CompactionRun.Trigger.MANUAL:
        return
    if run.status == CompactionRun.Status.APPLIED:
        row.llm = row.llm_after
    row.llm_after = None
    save(row, "llm", "llm_after")


def _out_of_a_circle(row: Dialog) -> None:
    if row.paused_by != PausedBy.LOOP:
        return
    row.paused_by = PausedBy.NOBODY
    row.wake_seq += 1
    save(row, "paused_by", "wake_seq")
    drive_on_commit(row.pk)
