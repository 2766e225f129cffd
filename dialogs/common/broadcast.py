"""Sends events to browsers (nothing else sends to groups), and tells whether a dialog's page is open. Events are hints
or absolute states: a browser that missed one notices by the dialog's version, and reads again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine, Sequence
from typing import Any, TypeAlias, TypeVar
from uuid import UUID
from weakref import WeakKeyDictionary

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction

from dialogs.common.errors import is_full
from dialogs.common.threads import home

logger = logging.getLogger(__name__)
Answer = TypeVar("Answer")
MOMENT_SECONDS = 0.05
# An open page joins its dialog's group anew every few seconds (`consumers.LOOK_EVERY_SECONDS`).
JOINED_FOR_SECONDS = 15.0
# An action waits at most so long until its event is sent; a browser that gets none polls the dialog's version.
PATIENCE_SECONDS = 1.0
# After a Redis that did not answer in time, so long nothing is sent: a page sends several events.
LEFT_ALONE_SECONDS = 5.0
# Every open list is in this one: lists are few, and each knows whose dialogs it shows.
LISTS = "lists"
# Events that change nothing in a list.
UNLISTED = ("dialog.stream", "dialog.held")
_silent_until = 0.0
_is_away = False
# An event of a dialog.
DialogEvent: TypeAlias = "tuple[UUID, dict[str, Any]]"
# The events that wait to be sent, by their content, so that equal ones are sent once. Each event loop sends its own.
_waiting: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[Any, ...], DialogEvent]] = WeakKeyDictionary()
_sending: set[asyncio.Task[None]] = set()


def group_name(dialog_id: UUID) -> str:
    return f"dialog.{dialog_id.hex}"


async def is_watched(dialog_id: UUID) -> bool:
    """Is a page of this dialog open? While Redis is away that is unknown, and counts as yes."""
    layer = get_channel_layer()
    try:
        asked = layer.with_listeners([group_name(dialog_id)], since=time.time() - JOINED_FOR_SECONDS)
        found = bool(await _patiently(asked))
    except Exception as error:
        logger.info("Nobody can tell whether dialog %s is watched: %s", dialog_id, error)
        return True
    return found


async def _patiently(asked: Coroutine[Any, Any, Answer]) -> Answer:
    """The answer of Redis, if it comes in time. A Redis client may ignore a cancellation: it is not waited for."""
    global _silent_until  # one Redis for the process
    if time.monotonic() < _silent_until:
        asked.close()
        raise TimeoutError("it was silent a moment ago")
    task = asyncio.create_task(asked)
    await asyncio.wait({task}, timeout=PATIENCE_SECONDS)
    if not task.done():
        task.cancel()
        _silent_until = time.monotonic() + LEFT_ALONE_SECONDS
        raise TimeoutError(f"it was silent for {PATIENCE_SECONDS:g} s")
    return task.result()


async def _send(*news: DialogEvent) -> bool:
    """True where a browser hears it."""
    layer = get_channel_layer()
    if layer is None:
        return False
    try:
        is_heard = await _patiently(_to_groups(layer, news))
    except Exception as error:  # Redis away: browsers fall back to asking for the version
        _note(error, news)
        return False
    _note(None, news)
    return is_heard


def _note(error: Exception | None, news: Sequence[DialogEvent]) -> None:
    """Log once that Redis is away, and once that it is back: each streaming answer would log it many times a second."""
    global _is_away  # one Redis for the process
    if error and not _is_away:
        told = ", ".join(str(dialog_id) for dialog_id, _event in news)
        logger.warning("Could not broadcast to dialog %s, nor to others until this says so: %s", told, error)
    elif _is_away and not error:
        logger.warning("Broadcasts reach Redis again")
    _is_away = error is not None


async def _to_groups(layer: Any, news: Sequence[DialogEvent]) -> bool:
    """Send to groups. Most are empty, which is found out with one request to Redis for all; Channels makes two for
    each."""
    said = [(group_name(dialog_id), event) for dialog_id, event in news]
    changed = [dialog_id for dialog_id, event in news if event["type"] not in UNLISTED]
    said += [(LISTS, {"type": "list.changed", "dialog": str(dialog_id)}) for dialog_id in changed]
    groups = {group for group, _event in said}
    listened = await layer.with_listeners(groups, since=time.time() - layer.group_expiry)
    if listened:
        await layer.tell([(listened[group], event) for group, event in said if group in listened])
    return bool(listened)


async def stream_state(
    dialog_id: UUID,
    *,
    generation_id: int,
    seq: int,
    text: str,
    reasoning: str,
    at: int = 0,
    thought_at: int = 0,
    size: tuple[int, int] | None = None,
) -> bool:
    """The answer as received so far, from character `at` on, and its thoughts from `thought_at` on: what comes before
    stands in the database. `size`: tokens of prompt and answer, estimated, and of the window. False where nobody hears
    it, so that whoever streams needs not say it as often."""
    event = {"type": "dialog.stream", "generation": generation_id, "seq": seq}
    event |= {"text": text, "at": at, "reasoning": reasoning, "thought_at": thought_at}
    return await _send((dialog_id, event | ({"size": list(size)} if size else {})))


def dialog_changed(dialog_id: UUID) -> None:
    """Something that a browser shows has changed in the database."""
    _publish(dialog_id, {"type": "dialog.changed"})


def answer_held(dialog_id: UUID, error: Exception) -> None:
    """A finished answer could not be stored. That the database is full no row can say, so the page is told, each time
    anew, as one may be opened meanwhile. To be called on the event loop."""
    if is_full(error):
        _send_soon(dialog_id, {"type": "dialog.held"})


def changed_on_commit(dialog_id: UUID) -> None:
    transaction.on_commit(lambda: dialog_changed(dialog_id), robust=True)


def compaction_on_commit(dialog_id: UUID, run_id: int) -> None:
    """A compaction has got further. The row says how far; a lost event is made good by the next."""
    event = {"type": "dialog.compaction", "run": run_id}
    transaction.on_commit(lambda: _publish(dialog_id, event), robust=True)


def _publish(dialog_id: UUID, event: dict[str, Any]) -> None:
    """Called from a thread. If it works for a running event loop, that loop sends, and nobody waits for it."""
    loop = home()
    if loop is None or loop.is_closed():
        async_to_sync(_send)((dialog_id, event))
    else:
        loop.call_soon_threadsafe(_send_soon, dialog_id, event)


def _send_soon(dialog_id: UUID, event: dict[str, Any]) -> None:
    """Send together with the other events of the next moment; equal events are sent once."""
    waiting = _waiting.setdefault(asyncio.get_running_loop(), {})
    if not waiting:
        task = asyncio.create_task(_send_after_a_moment(waiting))
        _sending.add(task)
        task.add_done_callback(_sending.discard)
    waiting[(dialog_id, *event.values())] = dialog_id, event


async def all_sent() -> None:
    """Wait until this process has sent all events. To be called before an event loop ends."""
    loop = asyncio.get_running_loop()
    if sending := [task for task in tuple(_sending) if task.get_loop() is loop]:
        await asyncio.wait(sending, timeout=MOMENT_SECONDS + 2 * PATIENCE_SECONDS)


async def _send_after_a_moment(waiting: dict[tuple[Any, ...], DialogEvent]) -> None:
    try:
        await asyncio.sleep(MOMENT_SECONDS)
    finally:
        # What is said from now on needs a message of its own.
        news = tuple(waiting.values())
        waiting.clear()
    await _send(*news)
