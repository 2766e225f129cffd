"""Celery doors: each calls one function of ours; and the sweeper, a thread of the workers of turns that queues what is
due. The database is the queue's truth; a task is a hint.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from threading import Lock, Thread, Timer
from typing import Any
from uuid import UUID

from celery import shared_task
from celery.signals import worker_ready, worker_shutting_down
from celery.worker.state import active_requests
from django.conf import settings
from django.db import connections

from dialogs.common.broadcast import all_sent
from dialogs.common.schedule import (
    COMPACT,
    DRIVE,
    LEARN,
    PREPARE,
    REPLAY,
    queue_compaction,
    queue_drive,
    queue_learning,
    queue_replay,
)
from dialogs.common.threads import THREADS_OF_WORKER, own_threads
from dialogs.compaction.reads.compaction import neglected_runs
from dialogs.compaction.writes.drafts import apply_overdue_drafts
from dialogs.driver.run import drive as run_drive
from dialogs.llms import preload
from dialogs.models import Dialog
from dialogs.turns.reads.turns import due_dialogs
from dominds.event_loop import new_event_loop

# The page comes first: whoever has just started Dominds waits for that.
PRELOAD_AFTER_SECONDS = 10.0
# A turn that ends within so long may still do so when its worker is told to stop, which `up` kills a little later.
LAST_SECONDS = 2.5
LOOK_EVERY_SECONDS = 0.05
logger = logging.getLogger(__name__)

_turns: asyncio.AbstractEventLoop | None = None
_slices: set[asyncio.Task[Any] | None] = set()
_one_at_a_time = Lock()


@worker_ready.connect
def begin(sender: Any, **_about: object) -> None:
    """What a worker does beside its tasks: of compactions it loads the engine, of turns what an answer needs; and of
    turns it sweeps."""
    queues = sender.app.amqp.queues.consume_from
    if "compaction" in queues and settings.DOMINDS_PRELOAD_EMBEDDINGS:
        load_engine_soon()
    if "turns" in queues:
        sweeper = Sweeper()
        worker_shutting_down.connect(lambda **_about: sweeper.stop(), weak=False)
        sweeper.start()
        preload.soon()


@worker_shutting_down.connect
def stop(**_about: object) -> None:
    """Of itself a worker would wait for what it is at, however long, and then take Celery and torch apart for seconds.
    `up` kills it before."""
    after(LAST_SECONDS, hand_over)
    Thread(target=end_when_idle, name="ending", daemon=True).start()


def end_when_idle() -> None:
    """Nothing is left to be done in order once no task runs: tasks are hints."""
    while active_requests:
        time.sleep(LOOK_EVERY_SECONDS)
    os._exit(0)


def after(seconds: float, work: Callable[[], None]) -> None:
    """Unless the process has ended by then."""
    timer = Timer(seconds, work)
    timer.daemon = True
    timer.start()


def load_engine_soon() -> None:
    after(PRELOAD_AFTER_SECONDS, load_engine)


def load_engine() -> None:
    """All that a first compaction would wait for: the engine, a vocabulary, the embedding model."""
    from health.services import compact_messages

    said = [{"role": "user", "content": f"Number {number} is ready."} for number in range(40)]
    compact_messages(said, limit_tokens=300, task="ready", judge=True)


@shared_task(name=DRIVE)
def drive(dialog_id: str) -> None:
    """Drive one slice of a dialog, on the event loop of this process."""
    with suppress(CancelledError):
        asyncio.run_coroutine_threadsafe(_slice(UUID(dialog_id)), _loop()).result()


def hand_over() -> None:
    """Let go of all turns: whoever comes next takes them up at once, and no lease must run out before."""
    if _turns:
        _turns.call_soon_threadsafe(lambda: [task.cancel() for task in tuple(_slices) if task])


def _loop() -> asyncio.AbstractEventLoop:
    """On which all turns of this process run, until it ends: a turn finds the connections of the one before it, to the
    provider and to Redis. A new one to a provider far away takes longer than the first word does."""
    global _turns
    with _one_at_a_time:
        if _turns is None:
            _turns = new_event_loop()
            Thread(target=_run, args=(_turns,), name="turns", daemon=True).start()
    return _turns


def _run(loop: asyncio.AbstractEventLoop) -> None:
    """Until it is stopped. What a library raises to end the program, an event loop hands on: that would end all turns
    without a word, and those to come, where it shall end the one."""
    while True:
        try:
            return loop.run_forever()
        except (SystemExit, KeyboardInterrupt):
            logger.exception("A turn would have ended its worker")


async def _slice(dialog_id: UUID) -> None:
    _slices.add(asyncio.current_task())
    try:
        with own_threads(THREADS_OF_WORKER):
            await run_drive(dialog_id)
    finally:
        _slices.discard(asyncio.current_task())
        await all_sent()


@shared_task(name=COMPACT, bind=True)
def compact(task: Any, run_id: int) -> None:
    """Work at one compaction, if nobody does. A worker of the turns does it without the embedding model."""
    from dialogs.compaction.work import perform
    from dialogs.driver.run import FALLBACK
    from health.adapters import embeddings

    is_spare = task.request.delivery_info.get("routing_key") == "turns"
    perform(run_id, embedder=FALLBACK if is_spare else embeddings.DEFAULT)


@shared_task(name=PREPARE)
def prepare(dialog_id: str) -> None:
    """Ask the pruning agent of a dialog whose context will soon be full."""
    from dialogs.compaction.preparing import prepare as ask_beforehand

    ask_beforehand(UUID(dialog_id))


@shared_task(name=LEARN)
def learn() -> None:
    """Let the critic look, once an hour, however often this task is queued."""
    from dialogs.learning.beat import keep_beat

    keep_beat()


@shared_task(name=REPLAY)
def replay(what_if_id: int) -> None:
    """A slice of a "what if"; then whoever waits in the queue has a turn before the next."""
    from dialogs.learning.what_if.work import perform

    if perform(what_if_id):
        queue_replay(what_if_id)


TRASH_SECONDS = 3600.0
# How soon a beat that was missed is caught up; how often it beats, `dialogs.learning.beat` says.
BEAT_SECONDS = 60.0


class Sweeper(threading.Thread):
    def __init__(self) -> None:
        super().__init__(name="sweeper", daemon=True)
        self.stopped = threading.Event()
        self.said = ""

    def run(self) -> None:
        trash_due = beat_due = time.monotonic()
        work: Callable[[], str] = sweep_turns
        while not self.stopped.wait(settings.DOMINDS_SWEEP_SECONDS):
            work = sweep_turns if self.attempt(work) else find_database
            if time.monotonic() >= trash_due:
                self.attempt(empty_trash)
                trash_due = time.monotonic() + TRASH_SECONDS
            if time.monotonic() >= beat_due:
                self.attempt(wake_critic)
                beat_due = time.monotonic() + BEAT_SECONDS

    def attempt(self, work: Callable[[], str]) -> bool:
        """Do it and say what was done; False where it failed. The same words twice in a row are said once: an outage
        must not fill the log."""
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
    """After a sweep that failed: leases ran out while the database was away, and whoever holds one renews it first."""
    Dialog.objects.exists()
    return ""


def sweep_turns() -> str:
    queued = sweep()
    return f"{queued} dialogs were due and without a worker" if queued else ""


def sweep() -> int:
    """Queue every dialog with work due that nobody drives. Returns how many were queued.

    A compaction that no worker of its queue takes up goes to the workers of the turns. Previews whose time has run out
    apply themselves.
    """
    for run_id in neglected_runs():
        queue_compaction(run_id, queue="turns")
    apply_overdue_drafts()
    return sum(queue_drive(dialog_id) for dialog_id in due_dialogs())


def wake_critic() -> str:
    # What few moments need is loaded in them: turns are answered sooner after a start.
    from dialogs.learning.beat import is_due

    if is_due():
        queue_learning()
    return ""


def empty_trash() -> str:
    from dialogs.transcript.writes.trash import empty_trash as empty

    erased = empty(older_than_days=settings.DOMINDS_TRASH_DAYS)
    return f"{erased} dialogs left the trash for good" if erased else ""
