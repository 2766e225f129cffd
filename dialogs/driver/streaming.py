"""One answer while it comes: received, shown to browsers, flushed, and ended early where it must be."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any, TypeAlias

from dialogs.common.broadcast import is_watched
from dialogs.common.threads import in_db
from dialogs.context.estimate import Sizing
from dialogs.driver.head_start import told
from dialogs.driver.live import LiveAnswer, show
from dialogs.driver.seam import Seam
from dialogs.driver.subscriber import Subscriber
from dialogs.driver.under_way import LOOK_EVERY_SECONDS, until_stopped
from dialogs.driver.watch import Watch
from dialogs.models import Generation
from dialogs.providers.base import (
    ArgumentsDelta,
    ChatRequest,
    ProviderSettings,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
)
from dialogs.providers.http import bounded
from dialogs.providers.pool import borrowed
from dialogs.turns.writes.lease import Claim

END_SECONDS = 5.0


@dataclass(frozen=True)
class Call:
    """A generation that has been recorded and is about to be made."""

    generation: Generation
    request: ChatRequest
    settings: ProviderSettings
    sizing: Sizing
    watch: Watch | None = None
    # A client's request: its tools are its own, and somebody who hears it is more likely than somebody who looks on.
    is_clients: bool = False
    # Where the answer goes on with one that was cut.
    seam: Seam | None = None


Events: TypeAlias = AsyncGenerator[StreamEvent, None]


class Ending(Enum):
    FINISHED = auto()
    STOPPED = auto()  # by a person
    CUT = auto()  # for a compaction; the answer goes on after it
    FULL = auto()  # the window is full, and no compaction can help any more


async def stream(claim: Claim, call: Call, live: LiveAnswer, subscriber: Subscriber) -> Ending:
    """Receive the answer until it ends, or a person or the guard ends it, or nobody waits for it any more."""
    begun = subscriber.head_start(call.request, call.settings)
    if begun:
        return await attend(claim, call, live, subscriber, begun)
    async with borrowed(call.settings) as provider:
        return await attend(claim, call, live, subscriber, told(provider, call.request, subscriber, call.seam))


async def attend(claim: Claim, call: Call, live: LiveAnswer, subscriber: Subscriber, events: Events) -> Ending:
    shown = asyncio.create_task(show_soon(claim, call, live))
    watched = asyncio.create_task(until_stopped(claim, call.generation.pk, live))
    left = asyncio.create_task(subscriber.leaving())
    received = asyncio.create_task(receive(events, call, live))
    try:
        await asyncio.wait({received, watched, left}, return_when=asyncio.FIRST_COMPLETED)
        if received.done():
            return received.result()
        if watched.done():
            watched.result()
        return Ending.STOPPED
    finally:
        live.close()
        await end(received, watched, left, shown)


async def receive(events: Events, call: Call, live: LiveAnswer) -> Ending:
    async with aclosing(bounded(events)) as received:
        async for event in received:
            live.add(event)
            if call.watch and (ending := await watched_ending(call.watch, event)):
                return ending
    return Ending.FINISHED


async def watched_ending(watch: Watch, event: StreamEvent) -> Ending | None:
    """Nothing is cut that is whole: neither at what closes an answer, nor at the last piece of a call."""
    if isinstance(event, ArgumentsDelta):
        ending = await _ending_now(watch)
        watch.add(event)
        return ending
    watch.add(event)
    return await _ending_now(watch) if isinstance(event, TextDelta | ReasoningDelta) else None


async def _ending_now(watch: Watch) -> Ending | None:
    if watch.is_far:
        return None
    if not watch.sizing.is_foretold:
        await in_db(watch.prepare)()
    watch.count()
    if watch.over < 0:
        return None
    # What must stay of the course is read only where the answer comes so far.
    if watch.is_at_the_mark and await in_db(watch.can_help)():
        return Ending.CUT
    return Ending.FULL if watch.is_full else None


async def show_soon(claim: Claim, call: Call, live: LiveAnswer) -> None:
    if call.is_clients:
        await asyncio.sleep(LOOK_EVERY_SECONDS)
    shown = show(live, dialog_id=claim.dialog_id, generation_id=call.generation.pk)
    await asyncio.gather(shown, size_up(claim, call, live))


async def size_up(claim: Claim, call: Call, live: LiveAnswer) -> None:
    """Estimate the prompt where somebody looks on: while an answer grows its page says how full the window becomes.

    By a copy: what the guard and the calibration go by stays as it was counted, or was not.
    """
    llm = call.generation.llm
    live.window = call.watch.window if call.watch else llm.context_length if llm else None
    if live.window and await is_watched(claim.dialog_id):
        live.prompt_tokens = await in_db(lambda: replace(call.sizing).foretold.tokens)()


async def end(*tasks: asyncio.Task[Any]) -> None:
    """Cancel what still runs: a closed stream tells the server to stop.

    Waits a bounded time: the Redis client can swallow a cancellation, and a turn must not hang on that.
    """
    running = [task for task in tasks if task.cancel()]
    if running:
        await asyncio.wait(running, timeout=END_SECONDS)
