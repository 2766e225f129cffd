"""Passes a turn's events to a listener in the process that drives it. Browsers do not subscribe: they get broadcasts.

`/v1` drives a client's turn in the web process and forwards the events. With a `HeadStart` it calls the provider while
the request is still being stored, so that the client does not wait for that.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from dialogs.driver.repetition import RepetitionFilter
from dialogs.models import Generation
from dialogs.providers.base import (
    ChatRequest,
    Provider,
    ProviderError,
    ProviderFailed,
    ProviderSettings,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
)
from dialogs.providers.pool import borrowed
from health.models import CompactionRun


class Subscriber:
    """The base class: ignores all events and never leaves. Methods must not block, and only `conclude` may raise."""

    # Whether a failed request is retried after a while. Clients do that themselves.
    tries_again = True

    @property
    def has_left(self) -> bool:
        return False

    def head_start(self, request: ChatRequest, settings: ProviderSettings) -> AsyncGenerator[StreamEvent, None] | None:
        """The answer to this request, if it was requested already; the subscriber has heard each piece of it."""
        return None

    def hear(self, event: StreamEvent) -> None:
        """A piece of the answer. All pieces make one answer, also when it is cut for a compaction and continued."""

    def compacting(self) -> None:
        """A compaction before the next request begins."""

    def compacted(self, run: CompactionRun | None) -> None:
        """The compaction has ended, well or not. None if it had ended before."""

    def failed(self, error: ProviderError | None) -> None:
        """A request failed; None if the fault is Dominds's own."""

    def halted(self) -> None:
        """A person ended the turn before the next request."""

    def rounds_ended(self) -> None:
        """The turn was ended without an answer, since the model only called tools."""

    def conclude(self, generation: Generation, *, has_calls: bool) -> None:
        """Called on a database thread in the transaction that records the last answer of a client's turn. What is
        stored here is committed with it; after an exception the answer is recorded without it."""

    async def leaving(self) -> None:
        """Returns when the client has left."""
        await asyncio.Future()


SILENT = Subscriber()


END_SECONDS = 5.0


async def stream_to(
    provider: Provider, request: ChatRequest, subscriber: Subscriber, repetitions: RepetitionFilter | None = None
) -> AsyncGenerator[StreamEvent, None]:
    """Stream an answer's events, each to the subscriber first; without repetitions if it continues a cut one."""
    async with aclosing(provider.stream(request)) as events:
        async for event in events:
            for new in repetitions.passed(event) if repetitions else (event,):
                subscriber.hear(new)
                yield new


class HeadStart:
    """A provider call made before its request is stored. Its answer is taken over or dropped, on the same event loop.

    The driver makes the same request a moment later and takes the answer over; the caller ensures that no other request
    is made in between. Events that came until then are queued here; the subscriber hears each event once.
    """

    def __init__(self, request: ChatRequest, settings: ProviderSettings, subscriber: Subscriber) -> None:
        self._request, self._settings, self._subscriber = request, settings, subscriber
        self._waiting: asyncio.Queue[StreamEvent | Exception | None] = asyncio.Queue()
        self._is_taken = self._has_spoken = False
        self._receiving = asyncio.create_task(self._receive())

    @property
    def is_owed(self) -> bool:
        """Whether the subscriber has heard text of the answer, which the driver has not taken over yet."""
        return self._has_spoken and not self._is_taken

    def take_over(self, request: ChatRequest, settings: ProviderSettings) -> AsyncGenerator[StreamEvent, None] | None:
        """The whole answer, once, if it is to this same request; None if the driver must make the call.

        Raises ProviderFailed if the subscriber has already heard text of the answer to another request.
        """
        if self._is_taken:
            return None
        self._is_taken = True
        if (request, settings) == (self._request, self._settings):
            return self._answer()
        self._receiving.cancel()
        if self._has_spoken:
            raise ProviderFailed("The conversation changed while it was being asked. Ask again.")
        return None

    async def drop(self) -> None:
        """Drop the answer: nobody wants it. The closed connection makes the server stop."""
        if self._receiving.cancel():
            await asyncio.wait({self._receiving}, timeout=END_SECONDS)

    async def _receive(self) -> None:
        try:
            async with (
                borrowed(self._settings) as provider,
                aclosing(stream_to(provider, self._request, self._subscriber)) as events,
            ):
                async for event in events:
                    self._waiting.put_nowait(event)
                    if not self._has_spoken and isinstance(event, TextDelta | ReasoningDelta):
                        self._has_spoken = True
                        # Later events wait until the first is on its way to the client.
                        await asyncio.sleep(0)
        except Exception as error:  # raised where the answer is taken over
            self._waiting.put_nowait(error)
        finally:
            self._waiting.put_nowait(None)

    async def _answer(self) -> AsyncGenerator[StreamEvent, None]:
        try:
            while (event := await self._waiting.get()) is not None:
                if isinstance(event, Exception):
                    raise event
                yield event
        finally:
            await self.drop()
