"""Streams one answer: receives it, shows it to browsers, stores what came so far, and ends it early if it must.

Browsers get the text that the database does not have yet, about 16 times a second; the database all of it, once a
second.

One task per event loop stores the text of all its answers and checks which of them nobody wants any more: if each
answer did so itself, fifty would make two hundred queries a second.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum, auto
from typing import Any, TypeAlias
from uuid import UUID
from weakref import WeakKeyDictionary

from django.utils import timezone

from dialogs.common.broadcast import is_watched, stream_state
from dialogs.common.text import storable
from dialogs.common.threads import in_db, persistent
from dialogs.context.estimate import Sizing
from dialogs.driver.repetition import RepetitionFilter
from dialogs.driver.subscriber import Subscriber, stream_to
from dialogs.driver.watch import Watch
from dialogs.models import Generation
from dialogs.providers.base import (
    ArgumentsDelta,
    ChatRequest,
    Finished,
    ProviderSettings,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolCall,
    ToolCallReady,
    UsageReported,
)
from dialogs.providers.http import bounded
from dialogs.providers.pool import borrowed
from dialogs.turns.reads.turns import unwanted
from dialogs.turns.writes import generations
from dialogs.turns.writes.generations import Answer, PartialAnswer
from dialogs.turns.writes.lease import Claim
from health.monitor.levels import Usage, UsageUnavailable
from health.tokens.counters import rough

SHOW_EVERY_SECONDS = 0.06
# Seconds between two updates while no page is open: a page opened meanwhile is at most this much behind.
UNSEEN_SECONDS = 0.3
# Characters per token of arguments, which are mostly code and JSON.
CHARS_A_TOKEN = 3


@dataclass
class LiveAnswer:
    """The answer so far. Changes only through `add`, on one event loop."""

    pieces: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    usage: Usage | UsageUnavailable = field(default_factory=lambda: UsageUnavailable("the stream ended early"))
    usage_raw: dict[str, Any] | None = None
    finish_reason: str = ""
    first_token_at: datetime | None = None
    seq: int = 0
    closed: bool = False
    # The estimated tokens of the prompt, and the window's; known while somebody watches.
    prompt_tokens: int | None = None
    window: int | None = None
    argument_chars: int = 0
    # Browsers are sent the text from here on, as characters of text and reasoning: what the database held before its
    # last write, so that a page which was read just before that write lacks nothing.
    kept: tuple[int, int] = (0, 0)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, event: StreamEvent) -> None:
        match event:
            case TextDelta(text):
                self.pieces.append(text)
            case ReasoningDelta(text):
                self.thoughts.append(text)
            case ToolCallReady(call):
                self.calls.append(call)
            case UsageReported(usage, raw):
                self.usage, self.usage_raw = usage, raw
            case Finished(reason):
                self.finish_reason = reason
        if isinstance(event, ArgumentsDelta):
            self.argument_chars += len(event.text)
            self.changed.set()
        if isinstance(event, TextDelta | ReasoningDelta):
            self.first_token_at = self.first_token_at or timezone.now()
            self.seq += 1
            self.changed.set()

    def close(self) -> None:
        """The answer has ended: wake the task that waits for a change."""
        self.closed = True
        self.changed.set()

    @property
    def text(self) -> str:
        return _joined(self.pieces)

    @property
    def reasoning(self) -> str:
        return _joined(self.thoughts)

    @property
    def size(self) -> tuple[int, int] | None:
        """Tokens of prompt and answer so far, estimated, and the window."""
        if self.prompt_tokens is None or not self.window:
            return None
        answer = rough(self.text) + rough(self.reasoning) + self.argument_chars // CHARS_A_TOKEN
        return self.prompt_tokens + answer, self.window

    def as_answer(self) -> Answer:
        return Answer(
            text=self.text,
            reasoning=self.reasoning,
            calls=tuple(self.calls),
            usage=self.usage,
            usage_raw=self.usage_raw,
            finish_reason=self.finish_reason,
            first_token_at=self.first_token_at,
        )


def _joined(pieces: list[str]) -> str:
    """All pieces as one storable text; joined once only, so that a long answer takes linear time."""
    if len(pieces) > 1:
        pieces[:] = ["".join(pieces)]
    return storable(pieces[0]) if pieces else ""


async def show(live: LiveAnswer, *, dialog_id: UUID, generation_id: int) -> None:
    """Send the changed state to browsers, rarely while nobody watches. Returns once the answer is closed."""
    while not live.closed:
        live.changed.clear()
        at, thought_at = live.kept
        is_seen = await stream_state(
            dialog_id,
            generation_id=generation_id,
            seq=live.seq,
            text=live.text[at:],
            reasoning=live.reasoning[thought_at:],
            at=at,
            thought_at=thought_at,
            size=live.size,
        )
        await asyncio.sleep(SHOW_EVERY_SECONDS if is_seen else UNSEEN_SECONDS)
        await live.changed.wait()


END_SECONDS = 5.0


@dataclass(frozen=True)
class Call:
    """A generation that has been recorded and is about to be made."""

    generation: Generation
    request: ChatRequest
    settings: ProviderSettings
    sizing: Sizing
    watch: Watch | None = None
    # A client's request: it has its own tools, and more likely a listening client than a watching browser.
    is_clients: bool = False
    # Set if the answer continues a cut one.
    repetitions: RepetitionFilter | None = None


Events: TypeAlias = AsyncGenerator[StreamEvent, None]


class StreamEnd(Enum):
    FINISHED = auto()
    STOPPED = auto()  # by a person
    CUT = auto()  # for a compaction; the answer is continued after it
    FULL = auto()  # the window is full, and no compaction can help


async def stream(claim: Claim, call: Call, live: LiveAnswer, subscriber: Subscriber) -> StreamEnd:
    """Receive the answer until it ends, a person or the guard ends it, or nobody wants it any more."""
    begun = subscriber.head_start(call.request, call.settings)
    if begun:
        return await attend(claim, call, live, subscriber, begun)
    async with borrowed(call.settings) as provider:
        return await attend(
            claim, call, live, subscriber, stream_to(provider, call.request, subscriber, call.repetitions)
        )


async def attend(claim: Claim, call: Call, live: LiveAnswer, subscriber: Subscriber, events: Events) -> StreamEnd:
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
        return StreamEnd.STOPPED
    finally:
        live.close()
        await end(received, watched, left, shown)


async def receive(events: Events, call: Call, live: LiveAnswer) -> StreamEnd:
    async with aclosing(bounded(events)) as received:
        async for event in received:
            live.add(event)
            if call.watch and (ending := await watched_ending(call.watch, event)):
                return ending
    return StreamEnd.FINISHED


async def watched_ending(watch: Watch, event: StreamEvent) -> StreamEnd | None:
    """Whether to end the answer at this event. A complete answer or call is not cut: not at closing events, nor at the
    last piece of a call."""
    if isinstance(event, ArgumentsDelta):
        ending = await _ending_now(watch)
        watch.add(event)
        return ending
    watch.add(event)
    return await _ending_now(watch) if isinstance(event, TextDelta | ReasoningDelta) else None


async def _ending_now(watch: Watch) -> StreamEnd | None:
    if watch.is_far:
        return None
    if not watch.sizing.has_request_estimate:
        await in_db(watch.prepare)()
    watch.count()
    if watch.over < 0:
        return None
    # `can_help` reads the course, so it is asked only at this point.
    if watch.is_at_the_mark and await in_db(watch.can_help)():
        return StreamEnd.CUT
    return StreamEnd.FULL if watch.is_full else None


async def show_soon(claim: Claim, call: Call, live: LiveAnswer) -> None:
    if call.is_clients:
        await asyncio.sleep(LOOK_EVERY_SECONDS)
    shown = show(live, dialog_id=claim.dialog_id, generation_id=call.generation.pk)
    await asyncio.gather(shown, size_up(claim, call, live))


async def size_up(claim: Claim, call: Call, live: LiveAnswer) -> None:
    """Estimate the prompt if somebody watches: the page shows how full the window becomes while the answer grows.

    On a copy, because guard and calibration depend on whether `call.sizing` was counted.
    """
    llm = call.generation.llm
    live.window = call.watch.window if call.watch else llm.context_length if llm else None
    if live.window and await is_watched(claim.dialog_id):
        live.prompt_tokens = await in_db(lambda: replace(call.sizing).request_estimate.tokens)()


async def end(*tasks: asyncio.Task[Any]) -> None:
    """Cancel the running tasks; a closed stream makes the server stop.

    Waits a bounded time: the Redis client can swallow a cancellation, and a turn must not hang on that.
    """
    running = [task for task in tasks if task.cancel()]
    if running:
        await asyncio.wait(running, timeout=END_SECONDS)


LOOK_EVERY_SECONDS = 0.3
FLUSH_EVERY_SECONDS = 1.0


@dataclass(eq=False)
class StreamingAnswer:
    """An answer that is being streamed. `ended` is done once a person stops it, or its check failed."""

    claim: Claim
    generation_id: int
    live: LiveAnswer
    ended: asyncio.Future[None]
    flushed_at: float = field(default_factory=time.monotonic)
    flushed_seq: int = 0
    # How many characters of text and reasoning were last written to the database.
    given: tuple[int, int] = (0, 0)

    @property
    def is_due(self) -> bool:
        return self.live.seq > self.flushed_seq and time.monotonic() - self.flushed_at >= FLUSH_EVERY_SECONDS

    def partial(self) -> PartialAnswer:
        """The text so far, to be stored now."""
        self.flushed_at, self.flushed_seq = time.monotonic(), self.live.seq
        text, reasoning = self.live.text, self.live.reasoning
        return PartialAnswer(self.claim, self.generation_id, text=text, reasoning=reasoning, seq=self.flushed_seq)

    def is_kept(self, partial: PartialAnswer) -> None:
        self.live.kept, self.given = self.given, (len(partial.text), len(partial.reasoning))


class StreamingAnswers:
    """All answers that stream on one event loop. One task checks the database for them while there are any."""

    def __init__(self) -> None:
        self._coming: set[StreamingAnswer] = set()
        self._looking: asyncio.Task[None] | None = None

    async def until_stopped(self, claim: Claim, generation_id: int, live: LiveAnswer) -> None:
        """Store the answer about once a second; return when a person asks to stop it."""
        coming = StreamingAnswer(claim, generation_id, live, asyncio.get_running_loop().create_future())
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
        """While the database is away the answers go on. One that cannot be stored does not affect the others."""
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
    def _stop(dialog_ids: Collection[UUID], coming: Collection[StreamingAnswer]) -> None:
        for one in coming:
            if one.claim.dialog_id in dialog_ids and not one.ended.done():
                one.ended.set_result(None)


def _fail(error: Exception, coming: Collection[StreamingAnswer]) -> None:
    for one in coming:
        if not one.ended.done():
            one.ended.set_exception(error)


_of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, StreamingAnswers] = WeakKeyDictionary()


async def until_stopped(claim: Claim, generation_id: int, live: LiveAnswer) -> None:
    """`StreamingAnswers.until_stopped` of the running event loop."""
    under_way = _of_loops.setdefault(asyncio.get_running_loop(), StreamingAnswers())
    await under_way.until_stopped(claim, generation_id, live)
