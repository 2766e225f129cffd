"""The turn's writes beside the generation itself, and the end of a client's turn. Each is one transaction, fenced by
the lease."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from django.db import transaction

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
from dialogs.turns.writes import autonomous, lease, remediation
from dialogs.turns.writes.events import Code, is_fresh_start_due, log
from dialogs.turns.writes.lease import Claim, fenced
from dialogs.turns.writes.messages import add_typed
from dialogs.turns.writes.tool_calls import withdraw_open_calls
from health.compaction.terms.reasons import Reason
from health.models import CompactionRun

NO_MORE_ROUNDS = "Refused: this turn has made too many rounds of tool calls, or of calls whose arguments are not JSON."
RUN_USED_UP = "Not made: the run has used all its generations."
OWNER_OFF = "Not made: the account of the run's owner was switched off."
READ_IN_PART = "Not made: the server had read only a part of the prompt, and was asked again."


@transaction.atomic
def halt(held: Claim) -> None:
    """End the due answer at a person's word, before or between tries."""
    row = fenced(held)
    row.stop_requested = False
    withdraw_open_calls(row)
    close_answer(row, "stop_requested")


@transaction.atomic
def give_up(held: Claim) -> None:
    """End the due answer because workers died over it; the last try says so."""
    row = fenced(held)
    last = Generation.objects.filter(dialog=row, prompt_leaf=row.current_leaf).latest("id")
    last.status, last.error_code = Generation.Status.FAILED, "worker_died"
    last.save(update_fields=["status", "error_code"])
    row.paused_by = PausedBy.FAILURE
    close_answer(row, "paused_by")


@transaction.atomic
def stand_in_line(held: Claim, place: int | None) -> None:
    """Show where the turn stands in its provider's line; None: it stands there no longer."""
    row = fenced(held)
    row.place_in_line = place
    save(row, "place_in_line")


@transaction.atomic
def take_queued(held: Claim) -> None:
    """Make the message that waited longest the current leaf, and want its answer."""
    row = fenced(held)
    queued = QueuedMessage.objects.filter(dialog=row).first()
    if queued is not None:
        add_typed(row, queued.content)
        queued.delete()
        want_answer(row)


@transaction.atomic
def ask_once_more(held: Claim, *, generation: Generation) -> None:
    """Nobody watches, and the server read only a part of what this answer was made from: want another beside it.

    Compaction comes first, under the bound that was just learned. Once a turn, and not where compaction is off.
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
    """A person has stopped the agent, paused it, thrown the dialog away or typed since this was decided: the driver
    looks again."""
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
    """What the `clear_mind` tool does, with empty arguments and by the driver. No person is asked."""
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
    """Queue a run for the branch that is to be answered. Where one is under way already, that one serves."""
    row = fenced(held)
    dialog = dialog_to_drive(row.pk)
    guard = active_guard(dialog)
    if guard is None:
        return
    is_going_on = dialog.current_leaf is not None and dialog.current_leaf.origin == MessageOrigin.CONTINUATION
    if trigger == CompactionRun.Trigger.OVERFLOW or (trigger == CompactionRun.Trigger.STREAM and not is_going_on):
        # The provider says that it is too much, whatever our estimate says; or it leaves the answer too little room.
        guard = replace(guard, limit=min(guard.limit, present_tokens(dialog) + guard.reserve))
    if is_fresh_start_due(row):
        guard, trigger = replace(guard, chain=(FRESH_START,)), CompactionRun.Trigger.RESET
    seconds = REVIEW_SECONDS if _is_reviewed(row, trigger) else None
    with suppress(DialogBusy):
        queue_run(row, guard=guard, trigger=trigger, is_draft=seconds is not None, draft_seconds=seconds)


@transaction.atomic
def note_stuck(held: Claim, *, trigger: str, why: Reason) -> None:
    """Record, as a run that was skipped, that compaction cannot free more: nobody tries until the context has grown."""
    row = fenced(held)
    dialog = dialog_to_drive(row.pk)
    guard = guard_of(dialog)
    if guard is not None:
        skip_run(row, guard=guard, trigger=trigger, why=why, tokens=present_tokens(dialog) + guard.reserve)


def _is_reviewed(row: Dialog, trigger: str) -> bool:
    """By its owner, who wants that. Neither an answer that was cut nor a client on the line is kept waiting."""
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
    """Ask an agent no more that was asked again and again and whose context is as full as before."""
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
    """Autonomous mode: all generations are used. What the agent still wanted to call is not called, and what is due
    waits for the person: the limit is what they allowed."""
    row = fenced(held)
    autonomous.reach_limit(row)
    _rest(row, PausedBy.LIMIT, RUN_USED_UP)


@transaction.atomic
def pause_run(held: Claim) -> None:
    """Autonomous mode: nobody is there any more for whom it goes on. It waits until they are, and let it go on."""
    row = fenced(held)
    log(Code.OWNER_OFF, row)
    _rest(row, PausedBy.OWNER, OWNER_OFF)


def _rest(row: Dialog, why: PausedBy, words: str) -> None:
    """Nothing more is done, `words` say why to whoever called a tool."""
    row.paused_by = why
    if row.answer_due:
        withdraw_open_calls(row, words=words)
        close_answer(row, "paused_by")
    else:
        save(row, "paused_by")


@transaction.atomic
def end_left(held: Claim) -> None:
    """A client's turn whose process died is not resumed: whoever asked is gone."""
    close_answer(fenced(held))
    lease.release(held)
