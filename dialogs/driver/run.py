"""Drives a dialog: claims it, reads its state and performs what `decide` says, until nothing is due or the slice ends.

A slice has one generation at most. Then the lease is released and the rest is queued again, so that no dialog occupies
a worker's thread. Waiting for a compaction inside a turn is here too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from uuid import UUID

from django.conf import settings

from dialogs.common.schedule import queue_drive, queue_preparation
from dialogs.common.threads import in_db, persistent
from dialogs.compaction.preparing import is_soon
from dialogs.compaction.reads.compaction import newest_run, open_run
from dialogs.compaction.work import perform as make_run
from dialogs.compaction.writes.compaction import cancel_run, fail_run
from dialogs.compaction.writes.manual_compaction import apply_if_overdue
from dialogs.driver.calls import begin_taken
from dialogs.driver.decide import (
    Action,
    AwaitCompaction,
    CarryNotice,
    ClearMind,
    Compact,
    EndPrompts,
    EndRounds,
    EndRun,
    Generate,
    GiveUp,
    Halt,
    InsertPrompt,
    LookForLoop,
    NoteStuck,
    PauseRun,
    Push,
    Refuse,
    Rest,
    RunTools,
    TakeQueued,
    Wait,
    decide,
)
from dialogs.driver.generate import answer, generate
from dialogs.driver.guarding import LoadedDialog, load, with_guarding
from dialogs.driver.run_tools import run_tools
from dialogs.driver.streaming import Call
from dialogs.driver.subscriber import SILENT, Subscriber
from dialogs.driver.writes import cutting, turns
from dialogs.llms.windows import fresh_window, must_be_asked, tells_window
from dialogs.providers.base import ProviderError
from dialogs.turns.reads.turns import driven, is_stop_requested, state_of
from dialogs.turns.state import Policy, State
from dialogs.turns.writes import events, lease
from dialogs.turns.writes.events import note_pressure
from dialogs.turns.writes.lease import Claim, LeaseLost
from dominds.prepared import cached_reads
from health.compaction.terms.pressure import Pressure
from health.models import CompactionRun

logger = logging.getLogger(__name__)
LOOK_EVERY_SECONDS = 0.3
# The longest wait for the next try that a worker waits itself; after a longer one the sweeper queues the dialog.
HELD_SECONDS = 60.0
# The actions that are one transaction each, with the function that performs them.
WRITES: dict[type[Action], Callable[[Claim], None]] = {
    GiveUp: turns.give_up,
    TakeQueued: turns.take_queued,
    CarryNotice: turns.carry_notice,
    InsertPrompt: turns.insert_prompt,
    Push: turns.push,
    EndPrompts: turns.end_prompts,
    Halt: turns.halt,
    EndRounds: turns.end_rounds,
    EndRun: turns.end_run,
    PauseRun: turns.pause_run,
    LookForLoop: events.look_for_loop,
}


def policy(attempts: int | None = None) -> Policy:
    return Policy(
        attempts=attempts or settings.DOMINDS_PROVIDER_ATTEMPTS,
        base_seconds=settings.DOMINDS_BACKOFF_BASE_SECONDS,
        max_seconds=settings.DOMINDS_BACKOFF_MAX_SECONDS,
        outage_seconds=settings.DOMINDS_OUTAGE_SECONDS,
        tool_rounds=settings.DOMINDS_MAX_TOOL_ROUNDS,
    )


# The dialog, None if it is deleted; and its state.
LoadedState = tuple[LoadedDialog | None, State]
# What a slice may start with: the just loaded state of a client's dialog, or its first call if that is recorded.
SliceStart = LoadedState | Call | None


class LongWait(Exception):
    """The next try is too far off to wait for: the sweeper queues the dialog then."""


async def drive(dialog_id: UUID) -> None:
    """Drive one slice of a dialog. Returns at once when another worker holds it or nothing is due.

    A slice that fails is recorded and tried again, a few times at most. A cancelled one is queued again at once.
    """
    claim = await in_db(lease.claim)(dialog_id)
    if claim is None:
        return
    try:
        await _drive(claim)
    except asyncio.CancelledError:
        await _hand_over(claim)
        raise


async def _drive(claim: Claim) -> None:
    try:
        await drive_claimed(claim)
    except* LeaseLost:
        logger.warning("Dialog %s: another worker took over; this one stops.", claim.dialog_id)
    except* LongWait:
        await in_db(lease.give_back)(claim)
    except* Exception as failed:
        await in_db(turns.record_crash)(claim, failed)


async def drive_claimed(claim: Claim) -> None:
    if claim.is_clients:
        await in_db(turns.end_left)(claim)
        return
    if claim.deaths >= turns.MOST_CRASHES:
        await in_db(turns.end_turn)(claim, None, crashes=claim.deaths)
        return
    rested = await hold_lease(claim)
    if not (rested and await in_db(lease.release)(claim)):
        await _hand_over(claim)


async def _hand_over(claim: Claim) -> None:
    """Release the dialog with work still due, and queue it for the next worker."""
    await in_db(lease.give_back)(claim)
    await in_db(queue_drive)(claim.dialog_id)


def begun(claim: Claim, loaded: LoadedDialog, subscriber: Subscriber) -> Call | None:
    """The first call of a client's turn, recorded as the dialog is claimed; None if something else must come first."""
    if tells_window(loaded.dialog.llm):
        return None
    state = with_guarding(state_of(loaded.dialog, is_untried=True), loaded)
    return begin_taken(claim, loaded) if decide(state, _rules(subscriber)) == Generate(attempt=1) else None


async def drive_for(claim: Claim, subscriber: Subscriber, known: SliceStart) -> None:
    """Drive a client's dialog, already claimed and just read, until nothing is due. The lease is then still held,
    unless recording the answer released it.

    Raises an exception group with LeaseLost if another worker took over. Any other failure ends the turn at once: the
    client may try again.
    """
    try:
        rested = await hold_lease(claim, subscriber, known)
        while not rested:
            rested = await hold_lease(claim, subscriber)
    except* LeaseLost:
        raise
    except* Exception as failed:
        await in_db(turns.end_turn)(claim, failed)
        raise


async def hold_lease(claim: Claim, subscriber: Subscriber = SILENT, known: SliceStart = None) -> bool:
    """Run a slice while another task renews its lease. Raises a group with LeaseLost when another worker took over."""
    async with asyncio.TaskGroup() as group:
        renewing = group.create_task(keep_lease(claim))
        rested = await run_slice(claim, subscriber, known)
        renewing.cancel()
    return rested


async def keep_lease(claim: Claim) -> None:
    """Renew until cancelled. LeaseLost ends the slice; an unreachable database does not: nobody can claim it then."""
    renew = persistent(in_db(lease.renew))
    while True:
        await asyncio.sleep(settings.DOMINDS_LEASE_SECONDS / 3)
        await renew(claim)


async def run_slice(claim: Claim, subscriber: Subscriber, known: SliceStart) -> bool:
    """Perform actions until a generation is made or nothing is due. True if nothing is due."""
    rules, generated = _rules(subscriber), isinstance(known, Call)
    if isinstance(known, Call):
        if not await answer(claim, known, policy=rules, subscriber=subscriber):
            return True
        known = None
    while True:
        state, loaded = await look(claim, subscriber, known)
        action = decide(state, rules)
        if isinstance(action, Rest) or generated:
            return isinstance(action, Rest)
        generated, known = isinstance(action, Generate), None
        if isinstance(action, Halt):
            subscriber.halted()
        if isinstance(action, EndRounds):
            subscriber.rounds_ended()
        if not await perform(action, claim, rules, subscriber, loaded):
            return True


def _rules(subscriber: Subscriber) -> Policy:
    return policy() if subscriber.tries_again else policy(attempts=1)


async def look(
    claim: Claim, subscriber: Subscriber = SILENT, known: LoadedState | None = None
) -> tuple[State, LoadedDialog | None]:
    """Read the dialog's state, with the guard's values if it has a guard.

    Also returns the loaded dialog, if the next request can be made from it.
    """
    loaded, state = known or await in_db(read)(claim.dialog_id)
    if loaded is None or not state.answer_due:
        return state, None
    if subscriber.has_left:
        return replace(state, stop_requested=True), None
    if must_be_asked(loaded.dialog.llm):
        # The guard needs the window as the server has it now. If the server is away, the request fails, not the guard.
        with suppress(ProviderError):
            await fresh_window(loaded.dialog.llm)
        state = await in_db(with_guarding)(state, loaded)
    dialog = loaded.dialog
    if state.guard and is_soon(loaded.guard, tokens=state.guard.tokens):
        await in_db(queue_preparation)(claim.dialog_id)
    if state.guard and state.guard.pressure is not Pressure.NORMAL and not state.guard.running:
        is_over_hit = await in_db(note_pressure)(claim, state.guard)
        state = replace(state, loop_check_due=state.loop_check_due or is_over_hit)
    return state, None if tells_window(dialog.llm) else loaded


def read(dialog_id: UUID, known: LoadedDialog | None = None) -> LoadedState:
    """The dialog's state, with the guard's values unless the server must be asked for its window first."""
    with cached_reads():
        dialog = known.dialog if known else driven(dialog_id)
        if dialog is None:
            return None, State(answer_due=False)
        state = state_of(dialog)
        loaded = known or (load(dialog) if state.answer_due else LoadedDialog(dialog))
        return loaded, state if must_be_asked(dialog.llm) else with_guarding(state, loaded)


async def perform(
    action: Action, claim: Claim, rules: Policy, subscriber: Subscriber = SILENT, loaded: LoadedDialog | None = None
) -> bool:
    """Perform one action. False if nothing is due afterwards."""
    match action:
        case Generate(attempt):
            return await generate(claim, attempt=attempt, policy=rules, subscriber=subscriber, known=loaded)
        case RunTools(refused):
            await run_tools(claim, refused=refused)
        case Wait(seconds):
            await wait(seconds, claim)
        case Compact() | AwaitCompaction() | Refuse():
            await make_room(action, claim, subscriber)
        case NoteStuck(trigger, why):
            await in_db(turns.note_stuck)(claim, trigger=trigger, why=why)
        case ClearMind(overflow):
            await in_db(turns.clear_mind)(claim, overflow=overflow)
        case Rest():
            pass
        case _:
            await in_db(WRITES[type(action)])(claim)
    return True


async def wait(seconds: float, claim: Claim) -> None:
    """Sleep until the next try is due, or a person stops it. Raises LongWait for a long one, to free the thread."""
    if seconds > HELD_SECONDS:
        raise LongWait
    deadline = asyncio.get_running_loop().time() + seconds
    while (left := deadline - asyncio.get_running_loop().time()) > 0:
        await asyncio.sleep(min(LOOK_EVERY_SECONDS, left))
        if await in_db(is_stop_requested)(claim.dialog_id):
            return


COMPACTION_LOOK_SECONDS = 0.1
FALLBACK = "static"
MOST_TRIES = 3


async def make_room(action: Compact | AwaitCompaction | Refuse, claim: Claim, subscriber: Subscriber = SILENT) -> None:
    """Compact for the next request, and return when the run has ended, well or not; or refuse the request."""
    if isinstance(action, Refuse):
        await in_db(cutting.refuse)(claim, why=action.why)
        return
    subscriber.compacting()
    if isinstance(action, Compact):
        await in_db(turns.want_compaction)(claim, trigger=action.trigger)
    await wait_for_compaction(claim, subscriber)
    subscriber.compacted(await in_db(newest_run)(claim.dialog_id))


async def wait_for_compaction(claim: Claim, subscriber: Subscriber) -> None:
    """Wait until no run of this dialog is under way. A person who stops the turn cancels the run.

    A client that leaves does not: it will send the same history again, and can use the finished run.
    """
    loop = asyncio.get_running_loop()
    since, tries = loop.time(), 0
    while (run := await in_db(open_run)(claim.dialog_id)) is not None:
        if subscriber.has_left:
            return
        if await in_db(is_stop_requested)(claim.dialog_id):
            await in_db(cancel_run)(dialog=run.dialog, run_id=run.pk)
        elif run.status == CompactionRun.Status.DRAFT:
            await in_db(apply_if_overdue)(run)
        elif is_left_alone(run, waited=loop.time() - since):
            # With static vectors, because the turns' worker never loads torch.
            tries += 1
            await _do_it_here(run, tries)
        await asyncio.sleep(COMPACTION_LOOK_SECONDS)


async def _do_it_here(run: CompactionRun, tries: int) -> None:
    """Make the run; after several failed tries end it: the turn goes on without it."""
    if tries <= MOST_TRIES:
        logger.info("No worker takes compaction %s up: this one does it", run.pk)
        await in_db(make_run, beside=True)(run.pk, embedder=FALLBACK)
    else:
        logger.error("Compaction %s cannot be made: it is ended", run.pk)
        await in_db(fail_run)(dialog=run.dialog, run_id=run.pk)


def is_left_alone(run: CompactionRun, *, waited: float) -> bool:
    """Has no worker claimed the run in time, or has the one that did died?"""
    if run.status == CompactionRun.Status.QUEUED:
        return waited >= settings.DOMINDS_COMPACTION_WAIT_SECONDS
    return run.is_overdue
