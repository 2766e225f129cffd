"""Tell the workers, and the browsers, once a transaction has committed. Failing to tell loses nothing.

Tasks are hints: the row says what is due, and the sweeper queues whatever a lost hint left behind.
"""

from __future__ import annotations

import logging
from uuid import UUID

from django.db import transaction

from dominds.celery import app

logger = logging.getLogger(__name__)
DRIVE = "dialogs.drive"
COMPACT = "dialogs.compact"
LEARN = "dialogs.learn"
REPLAY = "dialogs.replay"
# The sweeper asks again by then: hints of a beat must not pile up while no worker is there.
LEARN_EXPIRES_SECONDS = 50


def queue_drive(dialog_id: UUID) -> bool:
    """Queue the turn now. False when the broker cannot be reached: the sweeper will."""
    return _queued(DRIVE, str(dialog_id), queue="turns")


def drive_on_commit(dialog_id: UUID) -> None:
    transaction.on_commit(lambda: queue_drive(dialog_id), robust=True)


def queue_compaction(run_id: int, *, queue: str = "compaction") -> bool:
    """Queue a run now. False when the broker cannot be reached; whoever waits for the run then does it."""
    return _queued(COMPACT, run_id, queue=queue)


def compact_on_commit(run_id: int) -> None:
    transaction.on_commit(lambda: queue_compaction(run_id), robust=True)


def queue_learning() -> bool:
    """Wake the critic. False when the broker cannot be reached; the sweeper tries again."""
    return _queued(LEARN, queue="compaction", expires=LEARN_EXPIRES_SECONDS)


def queue_replay(what_if_id: int) -> bool:
    """Queue the next slice of a "what if". False when the broker cannot be reached; who waits for it then does it."""
    return _queued(REPLAY, what_if_id, queue="compaction")


def replay_on_commit(what_if_id: int) -> None:
    transaction.on_commit(lambda: queue_replay(what_if_id), robust=True)


def _queued(task: str, *about: str | int, queue: str, expires: int | None = None) -> bool:
    try:
        app.send_task(task, args=list(about), queue=queue, retry=False, expires=expires)
    except Exception as error:  # kombu and redis each raise their own
        logger.warning("Could not queue %s %s: %s", task, about, error)
        return False
    return True
