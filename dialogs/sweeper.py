"""The sweeper: a thread in a worker of turns. It queues again what a lost task or a dead worker left due, and starts
periodic work: the trash, and once an hour the critic.

The database says what is due. The thread survives every failure.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import TypeAlias
from uuid import UUID

from django.conf import settings
from django.db import connections
from django.utils import timezone
from redis import Redis

from dialogs.common.schedule import queue_compaction, queue_drive, queue_learning
from dialogs.compaction.reads.compaction import neglected_runs
from dialogs.compaction.writes.manual_compaction import apply_overdue_drafts
from dialogs.models import Dialog
from dialogs.turns.reads.turns import due_dialogs
from health import reward_log
from health.configured import context_config

logger = logging.getLogger(__name__)
TRASH_SECONDS = 3600.0
# Redis holds the time of the critic's last start for an hour. Whoever sets the key starts it, so it starts once;
# without the key a start is due, so a missed one is made up for, once.
KEY = "dominds:beat:learning"
BEAT_SECONDS, EVERY_SECONDS, AFTER_FAILURE_SECONDS = 60.0, 3600, 300
PATIENCE_SECONDS = 2.0


Drive: TypeAlias = Callable[[UUID], bool]


def nobody(_dialog_id: UUID) -> bool:
    return False


class Sweeper(threading.Thread):
    """`drive` begins a slice if the broker cannot be reached and there is room for another."""

    def __init__(self, drive: Drive = nobody) -> None:
        super().__init__(name="sweeper", daemon=True)
        self.drive = drive
        self.stopped = threading.Event()
        self.said = ""

    def run(self) -> None:
        trash_due = beat_due = time.monotonic()
        work: Callable[[], str] = self.sweep
        while not self.stopped.wait(settings.DOMINDS_SWEEP_SECONDS):
            work = self.sweep if self.attempt(work) else find_database
            if time.monotonic() >= trash_due:
                self.attempt(empty_trash)
                trash_due = time.monotonic() + TRASH_SECONDS
            if time.monotonic() >= beat_due:
                self.attempt(wake_critic)
                beat_due = time.monotonic() + BEAT_SECONDS

    def sweep(self) -> str:
        return sweep_turns(self.drive)

    def attempt(self, work: Callable[[], str]) -> bool:
        """Do the work and log its result, but not the same twice in a row, as in an outage. False if it failed."""
        is_done = False
        try:
            said = work()
            is_done = True
        except Exception as error:
            said = f"{work.__name__} failed, and is tried again: {error}"
        finally:
            connections.close_all()
        if said and said != self.said:
            logger.info("%s", said)
        self.said = said or self.said
        return is_done

    def stop(self) -> None:
        self.stopped.set()


def find_database() -> str:
    """Runs after a failed sweep: leases expired while the database was away, so their holders renew them first."""
    Dialog.objects.exists()
    return ""


def sweep_turns(drive: Drive = nobody) -> str:
    taken = sweep(drive)
    return f"{taken} dialogs were due and without a worker" if taken else ""


def sweep(drive: Drive = nobody) -> int:
    """Queue every dialog with work due that nobody drives, or `drive` it. Returns how many were taken up.

    Compactions that no worker of their queue takes go to the workers of turns. Previews past their time are applied.
    """
    for run_id in neglected_runs():
        queue_compaction(run_id, queue="turns")
    apply_overdue_drafts()
    return sum(queue_drive(dialog_id) or drive(dialog_id) for dialog_id in due_dialogs())


def wake_critic() -> str:
    if is_due():
        queue_learning()
    return ""


def empty_trash() -> str:
    from dialogs.transcript.writes.dialog_row import empty_trash as empty

    erased = empty(older_than_days=settings.DOMINDS_TRASH_DAYS)
    return f"{erased} dialogs left the trash for good" if erased else ""


def is_due() -> bool:
    with _redis() as redis:
        return not redis.exists(KEY)


def keep_beat() -> bool:
    """Run the critic if it is due and nobody else has. After a failure it is tried again sooner than in an hour."""
    with _redis() as redis:
        if not redis.set(KEY, timezone.now().isoformat(), nx=True, ex=EVERY_SECONDS):
            return False
        try:
            run_critic()
        except Exception:
            redis.expire(KEY, AFTER_FAILURE_SECONDS)
            raise
    return True


def run_critic() -> None:
    """Run the critic, and delete what is too old from the log of rewards."""
    # Imported here because it is rarely needed: turns are answered sooner after a start.
    from dialogs.learning.writes import make_proposals

    now = timezone.now()
    for proposal in make_proposals(now=now):
        logger.info("The critic proposes %s", proposal)
    gone = reward_log.prune(before=now - timedelta(days=context_config().reward_log_days))
    if gone:
        logger.info("%s lines left the log of rewards", gone)


def _redis() -> Redis:
    return Redis.from_url(settings.REDIS_URL, socket_timeout=PATIENCE_SECONDS, socket_connect_timeout=PATIENCE_SECONDS)
