"""Waiting for a compaction inside a turn: a worker does it, or this process where no worker takes it up."""

from __future__ import annotations

import asyncio
import logging

from django.conf import settings

from dialogs.common.threads import in_db
from dialogs.compaction.reads.compaction import newest_run, open_run
from dialogs.compaction.work import perform
from dialogs.compaction.writes.compaction import cancel_run, fail_run
from dialogs.compaction.writes.drafts import apply_if_overdue
from dialogs.driver.decide import AwaitCompaction, Compact, Refuse
from dialogs.driver.subscriber import NOBODY, Subscriber
from dialogs.driver.writes import cutting, turns
from dialogs.turns.reads.turns import is_stop_requested
from dialogs.turns.writes.lease import Claim
from health.models import CompactionRun

logger = logging.getLogger(__name__)
LOOK_EVERY_SECONDS = 0.1
FALLBACK = "static"
MOST_TRIES = 3


async def make_room(action: Compact | AwaitCompaction | Refuse, claim: Claim, subscriber: Subscriber = NOBODY) -> None:
    """Compact the context for the next request, and return when that is over, however it ended; or give it up."""
    if isinstance(action, Refuse):
        await in_db(cutting.refuse)(claim, why=action.why)
        return
    subscriber.compacting()
    if isinstance(action, Compact):
        await in_db(turns.want_compaction)(claim, trigger=action.trigger)
    await wait_for_compaction(claim, subscriber)
    subscriber.compacted(await in_db(newest_run)(claim.dialog_id))


async def wait_for_compaction(claim: Claim, subscriber: Subscriber = NOBODY) -> None:
    """Until no run of this dialog is under way. A person who stops the turn cancels the run.

    A client that leaves does not: it will send the same history again, and then the run has been made.
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
            # Static vectors: the turns' worker never loads torch.
            tries += 1
            await _do_it_here(run, tries)
        await asyncio.sleep(LOOK_EVERY_SECONDS)


async def _do_it_here(run: CompactionRun, tries: int) -> None:
    """Make the run, or where that has come to nothing again and again, end it: the turn goes on without it."""
    if tries <= MOST_TRIES:
        logger.info("No worker takes compaction %s up: this one does it", run.pk)
        await in_db(perform, beside=True)(run.pk, embedder=FALLBACK)
    else:
        logger.error("Compaction %s cannot be made: it is ended", run.pk)
        await in_db(fail_run)(dialog=run.dialog, run_id=run.pk)


def is_left_alone(run: CompactionRun, *, waited: float) -> bool:
    """Nobody has taken it up in time, or whoever did has died."""
    if run.status == CompactionRun.Status.QUEUED:
        return waited >= settings.DOMINDS_COMPACTION_WAIT_SECONDS
    return run.is_overdue
