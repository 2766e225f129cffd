"""The shell around `decide`: claim, look, act, record, until nothing is due or the slice is over.

A slice is one generation at most: then the lease goes back and the rest is queued again, so that no
dialog keeps a worker's thread to itself.
"""

from __future__ import annotations

import asyncio
import logging
from uuid import UUID

from channels.db import database_sync_to_async as in_db
from django.conf import settings

from dialogs.driver.decide import Action, Generate, GiveUp, Halt, Rest, TakeQueued, Wait, decide
from dialogs.driver.generate import generate
from dialogs.driver.state import RetryPolicy
from dialogs.schedule import queue_drive
from dialogs.selectors.turns import is_stop_requested, turn_state
from dialogs.services import turns
from dialogs.services.turns import Claim, LeaseLost

logger = logging.getLogger(__name__)
LOOK_EVERY_SECONDS = 0.3


def retry_policy() -> RetryPolicy:
    return RetryPolicy(
        attempts=settings.DOMINDS_PROVIDER_ATTEMPTS,
        base_seconds=settings.DOMINDS_BACKOFF_BASE_SECONDS,
        max_seconds=settings.DOMINDS_BACKOFF_MAX_SECONDS,
    )


async def drive(dialog_id: UUID) -> None:
    """Drive one slice of a dialog. Returns at once when another worker holds it or nothing is due."""
    claim = await in_db(turns.claim)(dialog_id)
    if claim is None:
        return
    if await hold_lease(claim) and not await in_db(turns.settle)(claim):
        await in_db(queue_drive)(dialog_id)


async def hold_lease(claim: Claim) -> bool:
    """Run a slice while another task renews its lease. False when another worker took over."""
    held = True
    try:
        async with asyncio.TaskGroup() as group:
            renewing = group.create_task(keep_lease(claim))
            await run_slice(claim)
            renewing.cancel()
    except* LeaseLost:
        logger.warning("Dialog %s: another worker took over; this one stops.", claim.dialog_id)
        held = False
    return held


async def keep_lease(claim: Claim) -> None:
    """Renew until cancelled. LeaseLost ends the slice with it."""
    while True:
        await asyncio.sleep(settings.DOMINDS_LEASE_SECONDS / 3)
        await in_db(turns.renew)(claim)


async def run_slice(claim: Claim) -> None:
    policy = retry_policy()
    while True:
        action = decide(await in_db(turn_state)(claim.dialog_id), policy)
        await perform(action, claim, policy)
        if isinstance(action, Generate | Rest):
            return


async def perform(action: Action, claim: Claim, policy: RetryPolicy) -> None:
    match action:
        case Generate(attempt):
            await generate(claim, attempt=attempt, policy=policy)
        case Wait(seconds):
            await wait(seconds, claim)
        case TakeQueued():
            await in_db(turns.take_queued)(claim)
        case Halt():
            await in_db(turns.halt)(claim)
        case GiveUp():
            await in_db(turns.give_up)(claim)
        case Rest():
            pass


async def wait(seconds: float, claim: Claim) -> None:
    """Sleep until the next try is due, or a person stops it."""
    deadline = asyncio.get_running_loop().time() + seconds
    while (left := deadline - asyncio.get_running_loop().time()) > 0:
        await asyncio.sleep(min(LOOK_EVERY_SECONDS, left))
        if await in_db(is_stop_requested)(claim.dialog_id):
            return
