"""One answer while it comes: received, shown to browsers, flushed, and ended early where it must be.

One look at the database for all answers of an event loop, every so often, keeps what has come of each and sees which
of them nobody wants any more. Were each to look by itself, fifty answers would do so two hundred times a second.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any, TypeAlias
from uuid import UUID
from weakref import WeakKeyDictionary

from dialogs.common.broadcast import is_watched
from dialogs.common.threads import in_db, persistent
from dialogs.context.estimate import Sizing
from dialogs.driver.live import LiveAnswer, show
from dialogs.driver.seam import Seam
from dialogs.driver.subscriber import Subscriber, told
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
from dialogs.turns.reads.turns import unwanted
from dialogs.turns.writes import generations
from dialogs.turns.writes.generations import Partial
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


LOOK_EVERY_SECONDS = 0.3
FLUSH_EVERY_SECONDS = 1.0


@dataclass(eq=False)
class Coming:
    """An answer that comes; `ended` once a person asks to stop it, or a look failed."""

    claim: Claim
    generation_id: int
    live: LiveAnswer
    ended: asyncio.Future[None]
    flushed_at: float = field(default_factory=time.monotonic)
    flushed_seq: int = 0
    # How much of answer and thoughts the database was last given.
    given: tuple[int, int] = (0, 0)

    @property
    def is_due(self) -> bool:
        return self.live.seq > self.flushed_seq and time.monotonic() - self.flushed_at >= FLUSH_EVERY_SECONDS

    def partial(self) -> Partial:
        """What has come so far, which the database is given now."""
        self.flushed_at, self.flushed_seq = time.monotonic(), self.live.seq
        text, reasoning = self.live.text, self.live.reasoning
        return Partial(self.claim, self.generation_id, text=text, reasoning=reasoning, seq=self.flushed_seq)

    def is_kept(self, partial: Partial) -> None:
        self.live.kept, self.given = self.given, (len(partial.text), len(partial.reasoning))


class UnderWay:
    """What comes on one event loop. It looks for as long as anything does."""

    def __init__(self) -> None:
        self._coming: set[Coming] = set()
        self._looking: asyncio.Task[None] | None = None

    async def until_stopped(self, claim: Claim, generation_id: int, live: LiveAnswer) -> None:
        """Returns when a person asks to stop this answer; until then it is kept about once a second."""
        coming = Coming(claim, generation_id, live, asyncio.get_running_loop().create_future())
        self._coming.add(coming)
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        try:
            await coming.ended
        finally:
            self._coming.discard(coming)
            if not self._coming and self._looking:
                self._looking.cancel()
                self._looking = None

    async def _look(self) -> None:
        """While the database is away the answers go on. One that cannot be kept takes no other along."""
        find, flush = persistent(in_db(unwanted)), persistent(in_db(generations.flush_each))
        while True:
            await asyncio.sleep(LOOK_EVERY_SECONDS)
            coming = list(self._coming)
            try:
                self._stop(await find([one.claim.dialog_id for one in coming]), coming)
            except Exception as error:
                _fail(error, coming)
            due = [one for one in coming if one.is_due]
            partials = [one.partial() for one in due]
            if not due:
                continue
            for one, partial, fault in zip(due, partials, await flush(partials), strict=True):
                if fault:
                    _fail(fault, [one])
                else:
                    one.is_kept(partial)

    @staticmethod
    def _stop(dialog_ids: Collection[UUID], coming: Collection[Coming]) -> None:
        for one in coming:
            if one.claim.dialog_id in dialog_ids and not one.ended.done():
                one.ended.set_result(None)


def _fail(error: Exception, coming: Collection[Coming]) -> None:
    for one in coming:
        if not one.ended.done():
            one.ended.set_exception(error)


_of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, UnderWay] = WeakKeyDictionary()


async def until_stopped(claim: Claim, generation_id: int, live: LiveAnswer) -> None:
    """Keep what has come of an answer about once a second; return when a person asks to stop it."""
    under_way = _of_loops.setdefault(asyncio.get_running_loop(), UnderWay())
    await under_way.until_stopped(claim, generation_id, live)
