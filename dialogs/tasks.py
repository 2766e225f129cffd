"""Celery doors: each calls one function of ours. The database is the queue's truth; a task is a hint."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from threading import Lock, Thread, Timer
from typing import Any
from uuid import UUID

from celery import shared_task
from celery.signals import worker_ready, worker_shutting_down
from celery.worker.state import active_requests
from django.conf import settings

from dialogs.common.broadcast import all_sent
from dialogs.common.schedule import COMPACT, DRIVE, LEARN, PREPARE, REPLAY, queue_replay
from dialogs.common.threads import THREADS_OF_WORKER, own_threads
from dialogs.driver.run import drive as run_drive
from dialogs.llms import preload
from dialogs.sweeper import Sweeper, keep_beat
from dominds.event_loop import new_event_loop

# The page comes first: whoever has just started Dominds waits for that.
PRELOAD_AFTER_SECONDS = 10.0
# A turn that ends within so long may still do so when its worker is told to stop, which `up` kills a little later.
LAST_SECONDS = 2.5
LOOK_EVERY_SECONDS = 0.05
logger = logging.getLogger(__name__)

_turns: asyncio.AbstractEventLoop | None = None
_slices: set[asyncio.Task[Any] | None] = set()
# Slices that no task tells of.
_beside: set[Future[None]] = set()
_one_at_a_time = Lock()


@worker_ready.connect
def begin(sender: Any, **_about: object) -> None:
    """What a worker does beside its tasks: of compactions it loads the engine, of turns what an answer needs; and of
    turns it sweeps."""
    queues = sender.app.amqp.queues.consume_from
    if "compaction" in queues and settings.DOMINDS_PRELOAD_EMBEDDINGS:
        load_engine_soon()
    if "turns" in queues:
        sweeper = Sweeper(drive_beside)
        worker_shutting_down.connect(lambda **_about: sweeper.stop(), weak=False)
        sweeper.start()
        preload.preload_soon()


@worker_shutting_down.connect
def stop(**_about: object) -> None:
    """Of itself a worker would wait for what it is at, however long, and then take Celery and torch apart for seconds.
    `up` kills it before."""
    after(LAST_SECONDS, hand_over)
    Thread(target=end_when_idle, name="ending", daemon=True).start()


def end_when_idle() -> None:
    """Nothing is left to be done in order once no task runs: tasks are hints."""
    while active_requests or _beside:
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


def drive_beside(dialog_id: UUID) -> bool:
    """Begin a slice that no task tells of, as the broker is away. False where as many go on already as may."""
    if len(_beside) >= settings.DOMINDS_TURN_THREADS:
        return False
    slice_of = asyncio.run_coroutine_threadsafe(_slice(dialog_id), _loop())
    _beside.add(slice_of)
    slice_of.add_done_callback(_beside.discard)
    return True


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
    keep_beat()


@shared_task(name=REPLAY)
def replay(what_if_id: int) -> None:
    """A slice of a "what if"; then whoever waits in the queue has a turn before the next."""
    from dialogs.learning.what_if.work import perform

    if perform(what_if_id):
        queue_replay(what_if_id)
