"""Whether somebody watches a dialog, and the only caller of `group_send`. Events are hints or absolute states.

A browser that missed an event notices by the dialog's version and fetches what is true.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any
from uuid import UUID

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction

from dialogs.threads import home

logger = logging.getLogger(__name__)
MOMENT_SECONDS = 0.05
# An open page joins its dialog's group anew every few seconds (`consumers.LOOK_EVERY_SECONDS`).
JOINED_FOR_SECONDS = 15.0
_waiting: dict[tuple[Any, ...], asyncio.Task[None]] = {}


def group_name(dialog_id: UUID) -> str:
    return f"dialog.{dialog_id.hex}"


async def is_watched(dialog_id: UUID) -> bool:
    """Is a page open on it? While Redis is away nobody can tell, so somebody may be watching."""
    layer = get_channel_layer()
    try:
        found: bool = await layer.has_listener(group_name(dialog_id), since=time.time() - JOINED_FOR_SECONDS)
    except Exception as error:
        logger.info("Nobody can tell whether dialog %s is watched: %s", dialog_id, error)
        return True
    return found


async def _send(dialog_id: UUID, event: dict[str, Any]) -> None:
    layer = get_channel_layer()
    if layer is None:
        return
    try:
        await layer.group_send(group_name(dialog_id), event)
    except Exception as error:  # Redis away: browsers fall back to asking for the version
        logger.warning("Could not broadcast to dialog %s: %s", dialog_id, error)


async def stream_state(dialog_id: UUID, *, generation_id: int, seq: int, text: str, reasoning: str) -> None:
    """The whole answer as received so far."""
    await _send(
        dialog_id,
        {"type": "dialog.stream", "generation": generation_id, "seq": seq, "text": text, "reasoning": reasoning},
    )


def dialog_changed(dialog_id: UUID) -> None:
    """Something that a browser shows has changed in the database."""
    _publish(dialog_id, {"type": "dialog.changed"})


def changed_on_commit(dialog_id: UUID) -> None:
    transaction.on_commit(lambda: dialog_changed(dialog_id), robust=True)


def compaction_on_commit(dialog_id: UUID, run_id: int) -> None:
    """A compaction has got further. The row says how far; a lost event is made good by the next."""
    event = {"type": "dialog.compaction", "run": run_id}
    transaction.on_commit(lambda: _publish(dialog_id, event), robust=True)


def _publish(dialog_id: UUID, event: dict[str, Any]) -> None:
    """From a thread. Where it works for an event loop, that sends, and nobody waits for it."""
    loop = home()
    if loop is None:
        async_to_sync(_send)(dialog_id, event)
    else:
        loop.call_soon_threadsafe(_send_soon, dialog_id, event)


def _send_soon(dialog_id: UUID, event: dict[str, Any]) -> None:
    """One for all that say the same within a moment: each tells a browser to look, and it will."""
    said = (dialog_id, *event.values())
    if said not in _waiting:
        _waiting[said] = asyncio.create_task(_send_after_a_moment(dialog_id, event))
        _waiting[said].add_done_callback(lambda _task: _waiting.pop(said, None))


async def _send_after_a_moment(dialog_id: UUID, event: dict[str, Any]) -> None:
    await asyncio.sleep(MOMENT_SECONDS)
    # What is said from now on needs a message of its own.
    _waiting.pop((dialog_id, *event.values()), None)
    await _send(dialog_id, event)
