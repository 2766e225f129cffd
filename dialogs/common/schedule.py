"""Queues tasks for workers, after the commit. A lost task loses nothing: rows say what is due, and the sweeper queues
it again.
"""

from __future__ import annotations

import logging
import time
from uuid import UUID

from django.conf import settings
from django.db import transaction
from kombu import Connection
from kombu.pools import producers

from dominds.celery import app

logger = logging.getLogger(__name__)
DRIVE = "dialogs.drive"
COMPACT = "dialogs.compact"
LEARN = "dialogs.learn"
REPLAY = "dialogs.replay"
PREPARE = "dialogs.prepare"
WARM_UP = "dialogs.warm_up"
# Preparing later than this would work on an outdated view: the next request has added messages.
PREPARE_EXPIRES_SECONDS = 60
# The sweeper asks again by then: hints of a beat must not pile up while no worker is there.
LEARN_EXPIRES_SECONDS = 50
# A process asks for the models at most so often.
WARM_UP_EVERY_SECONDS = 60
# How long an action of a page waits for the broker, which the client tries three times. After that the broker is
# not asked again for a while.
PATIENCE_SECONDS = 0.7
LEFT_ALONE_SECONDS = 5.0
_silent_until = 0.0
_warm_until = 0.0


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


def queue_preparation(dialog_id: UUID) -> bool:
    """Queue asking the pruning agent ahead of its run. False when the broker cannot be reached: the run asks then."""
    return _queued(PREPARE, str(dialog_id), queue="turns", expires=PREPARE_EXPIRES_SECONDS)


def queue_learning() -> bool:
    """Wake the critic. False when the broker cannot be reached; the sweeper tries again."""
    return _queued(LEARN, queue="compaction", expires=LEARN_EXPIRES_SECONDS)


def queue_warm_up() -> None:
    """Let the worker of compactions load what the next one needs. Asked again within a minute, this does nothing."""
    global _warm_until
    if time.monotonic() >= _warm_until:
        _warm_until = time.monotonic() + WARM_UP_EVERY_SECONDS
        _queued(WARM_UP, queue="compaction", expires=WARM_UP_EVERY_SECONDS)


def queue_replay(what_if_id: int) -> bool:
    """Queue the next slice of a "what if". False when the broker cannot be reached; the waiter then does the slice."""
    return _queued(REPLAY, what_if_id, queue="compaction")


def replay_on_commit(what_if_id: int) -> None:
    transaction.on_commit(lambda: queue_replay(what_if_id), robust=True)


def _queued(task: str, *about: str | int, queue: str, expires: int | None = None) -> bool:
    global _silent_until  # one broker for the process
    if time.monotonic() < _silent_until:
        return False
    begun = time.monotonic()
    try:
        with producers[_broker()].acquire(block=True, timeout=PATIENCE_SECONDS) as producer:
            app.send_task(task, args=list(about), queue=queue, retry=False, expires=expires, producer=producer)
    except Exception as error:  # kombu and redis each raise their own
        if time.monotonic() - begun >= PATIENCE_SECONDS:
            _silent_until = time.monotonic() + LEFT_ALONE_SECONDS
        logger.warning("Could not queue %s %s: %s", task, about, error)
        return False
    return True


def _broker() -> Connection:
    """A connection to publish on. Workers wait longer for the same server: they have nothing else to do."""
    patience = {"socket_timeout": PATIENCE_SECONDS, "socket_connect_timeout": PATIENCE_SECONDS}
    options = settings.CELERY_BROKER_TRANSPORT_OPTIONS | patience
    return Connection(settings.CELERY_BROKER_URL, transport_options=options)
