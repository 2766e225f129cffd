"""Waiting for a compaction inside a turn: a worker does it, or this process where no worker takes it up."""

from __future__ import annotations

import asyncio
import logging

from channels.db import database_sync_to_async as in_db
from django.conf import settings

from dialogs.compacting.work import perform
from dialogs.driver.decide import AwaitCompaction, Compact, Refuse
from dialogs.selectors.compaction import open_run
from dialogs.selectors.turns import is_stop_requested
from dialogs.services import cutting, turns
from dialogs.services.compaction import cancel_run
from dialogs.services.lease import Claim
from health.models import CompactionRun

logger = logging.getLogger(__name__)
LOOK_EVERY_SECONDS = 0.1
FALLBACK = "static"


async def make_room(action: Compact | AwaitCompaction | Refuse, claim: Claim) -> None:
    """Compact the context for the next request, and return when that is over, however it ended; or give it up."""
    match action:
        case Compact(trigger):
            await in_db(turns.want_compaction)(claim, trigger=trigger)
            await wait_for_compaction(claim)
        case AwaitCompaction():
            await wait_for_compaction(claim)
        case Refuse(reason):
            await in_db(cutting.refuse)(claim, reason=reason)


async def wait_for_compaction(claim: Claim) -> None:
    """Until no run of this dialog is under way. A person who stops the turn cancels the run."""
    loop = asyncio.get_running_loop()
    since = loop.time()
    while (run := await in_db(open_run)(claim.dialog_id)) is not None:
        if await in_db(is_stop_requested)(claim.dialog_id):
            await in_db(cancel_run)(dialog=run.dialog, run_id=run.pk)
        elif is_left_alone(run, waited=loop.time() - since):
            # Static vectors: the turns' worker never loads torch.
            logger.info("No worker takes compaction %s up: this one does it", run.pk)
            await in_db(perform, thread_sensitive=False)(run.pk, embedder=FALLBACK)
        await asyncio.sleep(LOOK_EVERY_SECONDS)


def is_left_alone(run: CompactionRun, *, waited: float) -> bool:
    """Nobody has taken it up in time, or whoever did has died."""
    if run.status == CompactionRun.Status.QUEUED:
        return waited >= settings.DOMINDS_COMPACTION_WAIT_SECONDS
    return run.is_overdue
