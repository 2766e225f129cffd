"""Celery tasks: each calls one function of ours. The database says what is due; a task is only a hint."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from functools import cache
from threading import Lock, Thread, Timer
from typing import Any
from uuid import UUID

from celery import shared_task
from celery.signals import worker_ready, worker_shutting_down
from celery.worker.state import active_requests
from django.conf import settings

from dialogs.common.broadcast import all_sent
from dialogs.common.schedule import COMPACT, DRIVE, LEARN, PREPARE, REPLAY, WARM_UP, queue_replay
from dialogs.common.threads import THREADS_OF_WORKER, own_threads
from dialogs.driver.run import drive as run_drive
from dialogs.llms import preload
from dialogs.sweeper import Sweeper, keep_beat
from dominds.event_loop import new_event_loop

# The page comes first: a person who has just started Dominds waits for it.
PRELOAD_AFTER_SECONDS = 10.0
# Seconds that a turn may still take when its worker is told to stop; `up` kills the worker a little later.
LAST_SECONDS = 2.5
LOOK_EVERY_SECONDS = 0.05
IDLE_LOOK_SECONDS = 1.0
logger = logging.getLogger(__name__)

_turns: asyncio.AbstractEventLoop | None = None
_slices: set[asyncio.Task[Any] | None] = set()
# Slices that no task began.
_beside: set[Future[None]] = set()
_one_at_a_time = Lock()


@worker_ready.connect
def begin(sender: Any, **_about: object) -> None:
    """Start what a worker does beside its tasks: one of compactions loads the engine, or looks whether its model is
    idle; one of turns loads what an answer needs, and runs the sweeper."""
    queues = sender.app.amqp.queues.consume_from
    if "compaction" in queues and settings.DOMINDS_EMBEDDINGS_IDLE_SECONDS == 0:
        load_engine_soon()
    elif "compaction" in queues:
        give_back_when_idle()
    if "turns" in queues:
        sweeper = Sweeper(drive_beside)
        worker_shutting_down.connect(lambda **_about: sweeper.stop(), weak=False)
        sweeper.start()
        preload.preload_soon()


@worker_shutting_down.connect
def stop(**_about: object) -> None:
    """Release the turns after a while, and exit. By itself a worker would wait for its tasks however long, and then
    spend seconds on closing Celery and torch: `up` would kill it before."""
    run_later(LAST_SECONDS, hand_over)
    Thread(target=end_when_idle, name="ending", daemon=True).start()


def end_when_idle() -> None:
    """Exit once no task runs. Queued tasks are only hints."""
    while active_requests or _beside:
        time.sleep(LOOK_EVERY_SECONDS)
    os._exit(0)


def run_later(seconds: float, work: Callable[[], None]) -> None:
    """Call `work` after so many seconds, unless the process has ended by then."""
    timer = Timer(seconds, work)
    timer.daemon = True
    timer.start()


def load_engine_soon() -> None:
    run_later(PRELOAD_AFTER_SECONDS, load_engine)


@cache
def load_engine() -> None:
    """Load what a first compaction would wait for: the engine, a vocabulary, the embedding model. Once a process."""
    from health.services import compact_messages

    said = [{"role": "user", "content": f"Number {number} is ready."} for number in range(40)]
    compact_messages(said, limit_tokens=300, task="ready", judge=True)


def give_back_when_idle() -> None:
    """End this process once the embedding model was unused for long, as no other way gives torch's memory back. Only
    where `up` starts it again."""
    if os.environ.get("DOMINDS_IS_RESTARTED"):
        Thread(target=_give_back, args=(settings.DOMINDS_EMBEDDINGS_IDLE_SECONDS,), name="idle", daemon=True).start()


def _give_back(seconds: int) -> None:
    while not _is_unused(seconds):
        time.sleep(IDLE_LOOK_SECONDS)
    logger.info("The embedding model was unused for %s s: this worker begins anew without it", seconds)
    os.kill(os.getpid(), signal.SIGTERM)


def _is_unused(seconds: int) -> bool:
    """Is the model loaded, and was not used for so long?"""
    if "torch" not in sys.modules:
        return False
    from health.adapters.embeddings import unused_seconds

    return unused_seconds() >= seconds


@shared_task(name=DRIVE)
def drive(dialog_id: str) -> None:
    """Drive one slice of a dialog, on the event loop of this process."""
    with suppress(CancelledError):
        asyncio.run_coroutine_threadsafe(_slice(UUID(dialog_id)), _loop()).result()


def drive_beside(dialog_id: UUID) -> bool:
    """Begin a slice without a task, as the broker is away. False if too many run already."""
    if len(_beside) >= settings.DOMINDS_TURN_THREADS:
        return False
    slice_of = asyncio.run_coroutine_threadsafe(_slice(dialog_id), _loop())
    _beside.add(slice_of)
    slice_of.add_done_callback(_beside.discard)
    return True


def hand_over() -> None:
    """Release all turns, so that the next worker can claim them at once, without waiting for their leases to expire."""
    if _turns:
        _turns.call_soon_threadsafe(lambda: [task.cancel() for task in tuple(_slices) if task])


def _loop() -> asyncio.AbstractEventLoop:
    """The event loop of all turns of this process, so that they share connections to provider and Redis. A new
    connection to a distant provider takes longer than the first word."""
    global _turns
    with _one_at_a_time:
        if _turns is None:
            _turns = new_event_loop()
            Thread(target=_run, args=(_turns,), name="turns", daemon=True).start()
    return _turns


def _run(loop: asyncio.AbstractEventLoop) -> None:
    """Run the loop until it is stopped. It would end at a SystemExit or KeyboardInterrupt of a library, and with it all
    turns silently: only the one turn is to end."""
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
    """Make one compaction, if nobody does. A worker of turns makes it without the embedding model."""
    from dialogs.compaction.work import perform
    from dialogs.driver.run import FALLBACK
    from health.adapters import embeddings

    is_spare = task.request.delivery_info.get("routing_key") == "turns"
    perform(run_id, embedder=FALLBACK if is_spare else embeddings.DEFAULT)


@shared_task(name=PREPARE)
def prepare(dialog_id: str) -> None:
    """Ask the pruning agent ahead, as the dialog's context will soon be full."""
    from dialogs.compaction.preparing import prepare as ask_beforehand

    ask_beforehand(UUID(dialog_id))


@shared_task(name=WARM_UP)
def warm_up() -> None:
    """Load the engine beside the tasks, as a compaction may be near."""
    run_later(0, load_engine)


@shared_task(name=LEARN)
def learn() -> None:
    """Run the critic, once an hour however often this task is queued."""
    keep_beat()


@shared_task(name=REPLAY)
def replay(what_if_id: int) -> None:
    """Make a slice of a "what if"; other tasks of the queue come before the next."""
    from dialogs.learning.what_if import perform

    if perform(what_if_id):
        queue_replay(what_if_id)
