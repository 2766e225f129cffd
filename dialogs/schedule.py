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
    """Queue the turn now. False when the broker cannot be reached."""
    try:
        app.send_task(DRIVE, args=[str(dialog_id)], queue="turns", retry=False)
    except Exception as error:  # kombu and redis each raise their own
        logger.warning("Could not queue dialog %s: %s. The sweeper will.", dialog_id, error)
        return False
    return True


def drive_on_commit(dialog_id: UUID) -> None:
    transaction.on_commit(lambda: queue_drive(dialog_id), robust=True)


def queue_compaction(run_id: int, *, queue: str = "compaction") -> bool:
    """Queue a run now. False when the broker cannot be reached; whoever waits for the run then does it."""
    try:
        app.send_task(COMPACT, args=[run_id], queue=queue, retry=False)
    except Exception as error:  # kombu and redis each raise their own
        logger.warning("Could not queue compaction %s: %s", run_id, error)
        return False
    return True


def compact_on_commit(run_id: int) -> None:
    transaction.on_commit(lambda: queue_compaction(run_id), robust=True)


def queue_learning() -> bool:
    """Wake the critic. False when the broker cannot be reached; the sweeper tries again."""
    try:
        app.send_task(LEARN, queue="compaction", retry=False, expires=LEARN_EXPIRES_SECONDS)
    except Exception as error:  # kombu and redis each raise their own
        logger.warning("Could not wake the critic: %s", error)
        return False
    return True


def queue_replay(what_if_id: int) -> bool:
    """Queue the next slice of a "what if". False when the broker cannot be reached; who waits for it then does it."""
    try:
        app.send_task(REPLAY, args=[what_if_id], queue="compaction", retry=False)
    except Exception as error:  # kombu and redis each raise their own
        logger.warning("Could not queue what if %s: %s", what_if_id, error)
        return False
    return True


def replay_on_commit(what_if_id: int) -> None:
    transaction.on_commit(lambda: queue_replay(what_if_id), robust=True)
