"""The driver's writes other than a generation's, and the end of a client's turn. Each is a transaction with the lease.

Slices that fail outside a generation are counted and tried again a little later; the third failure ends the turn with a
message, else it would begin again for ever. An exception is counted at once; the death of a worker is counted by the
next one that claims the dialog (`lease.claim`).
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from dialogs.common.errors import DialogBusy
from dialogs.compaction.reads.compaction import branch_of_turn
from dialogs.compaction.reads.compaction_card import display_of
from dialogs.compaction.writes.compaction import REVIEW_SECONDS, queue_run, skip_run
from dialogs.compaction.writes.manual_compaction import FRESH_START
from dialogs.context.carry_over import handover_for
from dialogs.context.estimate import present_tokens
from dialogs.driver.writes import courses
from dialogs.llms.guard import active_guard, guard_of, may_be_guarded
from dialogs.models import Course, Dialog, Generation, Message, QueuedMessage
from dialogs.models.dialog import PausedBy
from dialogs.models.message import MessageOrigin, Role
from dialogs.transcript.reads.autonomous import active_run
from dialogs.transcript.reads.tool_calls import offers_own_tools
from dialogs.transcript.writes.dialog_row import add_message, close_answer, count_anew, save, want_answer
from dialogs.turns.prompts import DONE_MARK, prompt
from dialogs.turns.reads.remediation import clearing_is_futile
from dialogs.turns.reads.turns import dialog_to_drive
from dialogs.turns.state import doubled
from dialogs.turns.writes import autonomous, lease, remediation
from dialogs.turns.writes.events import Code, is_fresh_start_due, log
from dialogs.turns.writes.generations import add_generation
from dialogs.turns.writes.lease import Claim, LeaseLost, fenced
from dialogs.turns.writes.messages import add_typed
from dialogs.turns.writes.tool_calls import withdraw_open_calls
from health.compaction.terms.reasons import Reason
from health.models import CompactionRun

logger = logging.getLogger(__name__)
MOST_CRASHES = 3
SLICE_FAILED, WORKER_DIED = "slice_failed", "worker_died"
NOT_MADE = "Ended by a fault of Dominds. What the call had done by then is not known."
NO_MORE_ROUNDS = "Refused: this turn has made too many rounds of tool calls, or of calls that cannot be made."
RUN_USED_UP = "Not made: the run has used all its generations."
OWNER_OFF = "Not made: the account of the run's owner was switched off."
READ_IN_PART = "Not made: the server had read only a part of the prompt, and was asked again."


@transaction.atomic
def halt(held: Claim) -> None:
    """End the due answer for a person, before or between tries."""
    row = fenced(held)
    row.stop_requested = False
    withdraw_open_calls(row)
    close_answer(row, "stop_requested")


@transaction.atomic
def give_up(held: Claim) -> None:
    """End the due answer because workers died while they made it; the last try says so."""
    row = fenced(held)
    last = Generation.objects.filter(dialog=row, prompt_leaf=row.current_leaf).latest("id")
    last.status, last.error_code = Generation.Status.FAILED, WORKER_DIED
    last.save(update_fields=["status", "error_code"])
    row.paused_by = PausedBy.FAILURE
    close_answer(row, "paused_by")


@transaction.atomic
def stand_in_line(held: Claim, place: int | None) -> None:
    """Store the turn's place in its provider's queue; None when it has left it."""
    row = fenced(held)
    row.place_in_line = place
    save(row, "place_in_line")


@transaction.atomic
def take_queued(held: Claim) -> None:
    """Make the longest waiting message the current leaf; its answer is due."""
    row = fenced(held)
    queued = QueuedMessage.objects.filter(dialog=row).first()
    if queued is not None:
        add_typed(row, queued.content)
        queued.delete()
        want_answer(row)


@transaction.atomic
def ask_once_more(held: Claim, *, generation: Generation) -> None:
    """Request a second version of an answer that the server made from a cut prompt while nobody watched.

    A compaction comes first, by the bound that was just learned. Once a turn, and not if compaction is off.
    """
    row = fenced(held)
    answer, leaf = generation.message, generation.prompt_leaf
    is_at_rest = answer is not None and row.current_leaf_id == answer.pk and not row.stop_requested
    if not is_at_rest or not may_be_guarded(dialog_to_drive(row.pk)) or _was_asked_once_more(leaf):
        return
    generation.manifest["asked_again"] = True
    generation.save(update_fields=["manifest"])
    withdraw_open_calls(row, words=READ_IN_PART)
    autonomous.go_on(row, since=generation.started_at)
    row.current_leaf = leaf
    want_answer(row)


def _was_asked_once_more(leaf: Message) -> bool:
    tries = Generation.objects.filter(prompt_leaf_id__in=branch_of_turn(leaf), manifest__asked_again=True)
    return tries.exists()


def _is_overtaken(row: Dialog) -> bool:
    """Did a person stop, pause, type in or delete the dialog since this was decided? Then the driver decides again."""
    if row.answer_due or row.trashed_at:
        return row.stop_requested or row.trashed_at is not None
    return bool(row.paused_by) or QueuedMessage.objects.filter(dialog=row).exists()


@transaction.atomic
def insert_prompt(held: Claim) -> None:
    row = fenced(held)
    if not _is_overtaken(row):
        remediation.insert_prompt(row)


@transaction.atomic
def carry_notice(held: Claim) -> None:
    row = fenced(held)
    remediation.carry_notice(row)
    save(row)


def clear_mind(held: Claim, *, overflow: bool) -> None:
    """Open a new course as the `clear_mind` tool does with empty arguments. No person is asked."""
    handover = handover_for(held.dialog_id)
    with transaction.atomic():
        row = fenced(held)
        if _is_overtaken(row):
            return
        if clearing_is_futile(row):
            row.paused_by = PausedBy.FULL
            close_answer(row, "paused_by")
            return
        opened_by = Course.OpenedBy.RECOVERY if overflow else Course.OpenedBy.AUTO
        courses.clear_mind(row, opened_by=opened_by, handover=handover)


@transaction.atomic
def want_compaction(held: Claim, *, trigger: str) -> None:
    """Queue a compaction of the branch to answer, unless one is under way."""
    row = fenced(held)
    dialog = dialog_to_drive(row.pk)
    guard = active_guard(dialog)
    if guard is None:
        return
    is_going_on = dialog.current_leaf is not None and dialog.current_leaf.origin == MessageOrigin.CONTINUATION
    if trigger == CompactionRun.Trigger.OVERFLOW or (trigger == CompactionRun.Trigger.STREAM and not is_going_on):
        # The provider refused it, whatever our estimate says; or it leaves the answer too little room.
        guard = replace(guard, limit=min(guard.limit, present_tokens(dialog) + guard.reserve))
    if is_fresh_start_due(row):
        guard, trigger = replace(guard, chain=(FRESH_START,)), CompactionRun.Trigger.RESET
    seconds = REVIEW_SECONDS if _is_reviewed(row, trigger) else None
    with suppress(DialogBusy):
        queue_run(row, guard=guard, trigger=trigger, is_draft=seconds is not None, draft_seconds=seconds)


@transaction.atomic
def note_stuck(held: Claim, *, trigger: str, why: Reason) -> None:
    """Record as a skipped run that compaction cannot free more: none is tried until the context has grown."""
    row = fenced(held)
    dialog = dialog_to_drive(row.pk)
    guard = guard_of(dialog)
    if guard is not None:
        skip_run(row, guard=guard, trigger=trigger, why=why, tokens=present_tokens(dialog) + guard.reserve)


def _is_reviewed(row: Dialog, trigger: str) -> bool:
    """Does the owner want to review the run? Neither a cut answer nor a waiting client is kept waiting for that."""
    may_wait = trigger not in (CompactionRun.Trigger.STREAM, CompactionRun.Trigger.RESET) and not row.is_client_driven
    return may_wait and display_of(row.owner_id).review_drafts


@transaction.atomic
def end_rounds(held: Claim) -> None:
    """End the turn of an agent that does nothing but call tools."""
    row = fenced(held)
    withdraw_open_calls(row, words=NO_MORE_ROUNDS)
    row.paused_by = PausedBy.ROUNDS
    close_answer(row, "paused_by")


@transaction.atomic
def end_prompts(held: Claim) -> None:
    """Stop the prompts to an agent that got the most of them and whose context is as full as before."""
    row = fenced(held)
    if not _is_overtaken(row):
        row.paused_by = PausedBy.PROMPTS
        save(row, "paused_by")


@transaction.atomic
def push(held: Claim) -> None:
    """Autonomous mode: tell the agent to go on towards the goal."""
    row = fenced(held)
    run = active_run(row)
    if run is None or _is_overtaken(row):
        return
    text = prompt(
        "push",
        language=row.work_language,
        goal=run.goal,
        generations=run.generations + 1,
        max_generations=run.max_generations,
        tools=offers_own_tools(row),
        done_mark=DONE_MARK,
    )
    count_anew(row)
    add_message(row, role=Role.USER, origin=MessageOrigin.PUSH, content=text, parent=row.current_leaf)
    want_answer(row)


@transaction.atomic
def end_run(held: Claim) -> None:
    """Autonomous mode: all generations are used. Open calls are not made and what is due waits for the person: the
    limit is what they allowed."""
    row = fenced(held)
    autonomous.reach_limit(row)
    _rest(row, PausedBy.LIMIT, RUN_USED_UP)


@transaction.atomic
def pause_run(held: Claim) -> None:
    """Autonomous mode: pause the run, as its owner's account is off, until they are back and press *Go on*."""
    row = fenced(held)
    log(Code.OWNER_OFF, row)
    _rest(row, PausedBy.OWNER, OWNER_OFF)


def _rest(row: Dialog, why: PausedBy, words: str) -> None:
    """Pause the dialog and end its turn; `words` become the result of its open calls."""
    row.paused_by = why
    if row.answer_due:
        withdraw_open_calls(row, words=words)
        close_answer(row, "paused_by")
    else:
        save(row, "paused_by")


@transaction.atomic
def end_left(held: Claim) -> None:
    """End a client's turn whose process died; it is not resumed, as its client is gone."""
    close_answer(fenced(held))
    lease.release(held)


def record_crash(held: Claim, error: BaseException) -> None:
    """Count a failed slice and delay the next one; the third in a turn ends it."""
    with suppress(LeaseLost):
        crashes = _count_crash(held)
        if crashes >= MOST_CRASHES:
            end_turn(held, error, crashes=crashes)
        else:
            logger.warning("Dialog %s failed, %s of %s times", held.dialog_id, crashes, MOST_CRASHES, exc_info=error)


@transaction.atomic
def _count_crash(held: Claim) -> int:
    row = fenced(held)
    row.crashes += 1
    wait = doubled(
        failures=row.crashes,
        base=settings.DOMINDS_BACKOFF_BASE_SECONDS,
        most=settings.DOMINDS_BACKOFF_MAX_SECONDS,
    )
    # Until then nobody can claim it; then the sweeper queues it.
    row.lease_until, row.slice_seq = timezone.now() + timedelta(seconds=wait), None
    save(row, "crashes", "lease_until", "slice_seq")
    return row.crashes


def end_turn(held: Claim, error: BaseException | None, *, crashes: int = 1) -> None:
    """End the turn with a message; the dialog rests until a person goes on, even if work is due. Raises LeaseLost.

    `error` is what the last slice raised, None if its worker died.
    """
    error = _inmost(error)
    logger.error("Dialog %s: its turn was ended after %s failures", held.dialog_id, crashes, exc_info=error)
    try:
        _say_so(held, type(error).__name__ if error else "", crashes)
    except LeaseLost:
        raise
    except Exception:
        logger.exception("Dialog %s: nothing could be said of it", held.dialog_id)
        _rest_unsaid(held)


def _inmost(error: BaseException | None) -> BaseException | None:
    """The only exception in an exception group; the group itself if it has several."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


@transaction.atomic
def _say_so(held: Claim, cause: str, crashes: int) -> None:
    row = fenced(held)
    withdraw_open_calls(row, words=NOT_MADE)
    _add_failure(row, held, cause)
    log(Code.SLICE_FAILED, row, cause=cause or WORKER_DIED, failures=crashes)
    row.paused_by, row.stop_requested, row.crashes, row.deaths = PausedBy.FAILURE, False, 0, 0
    row.handled_seq, row.lease_until, row.slice_seq = row.wake_seq, None, None
    close_answer(row, "paused_by", "stop_requested", "crashes", "deaths", "handled_seq", "lease_until", "slice_seq")


def _add_failure(row: Dialog, held: Claim, cause: str) -> None:
    """Add a failed try to the newest message: there a person looks for the answer."""
    left = Generation.objects.filter(dialog=row, status=Generation.Status.RUNNING)
    left.update(status=Generation.Status.INTERRUPTED, finished_at=timezone.now())
    leaf = row.current_leaf
    if leaf is None:
        return
    add_generation(
        row,
        held,
        leaf,
        status=Generation.Status.FAILED,
        error_code=SLICE_FAILED if cause else WORKER_DIED,
        error_message=cause,
        finished_at=timezone.now(),
    )


def _rest_unsaid(held: Claim) -> None:
    Dialog.objects.filter(pk=held.dialog_id, lease_token=held.token).update(
        answer_due=False,
        paused_by=PausedBy.FAILURE,
        stop_requested=False,
        crashes=0,
        deaths=0,
        handled_seq=F("wake_seq"),
        lease_until=None,
        slice_seq=None,
        version=F("version") + 1,
    )
