"""Who hears a turn in the process that drives it. Browsers do not subscribe: they are told by broadcasts.

`/v1` drives a client's turn in the web process, and sends on what it hears. It may ask while the request is still being
stored, so that a client waits for neither: a `HeadStart`.
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
    """One that hears nothing and never leaves. Nothing here may wait, and only `conclude` may fail."""

    # A provider that fails is asked again after a while. Clients do that themselves.
    tries_again = True

    @property
    def has_left(self) -> bool:
        return False

    def head_start(self, request: ChatRequest, settings: ProviderSettings) -> AsyncGenerator[StreamEvent, None] | None:
        """The answer to this very request, where it was asked for already; each piece of it was heard."""
        return None

    def hear(self, event: StreamEvent) -> None:
        """A piece of the answer. What is cut for a compaction is gone on with: all pieces make one answer."""

    def compacting(self) -> None:
        """Before the next request the context is made smaller."""

    def compacted(self, run: CompactionRun | None) -> None:
        """The compaction has ended, well or not. None: it had ended before."""

    def failed(self, error: ProviderError | None) -> None:
        """A request failed; None where it was a fault of ours."""

    def halted(self) -> None:
        """A person ended the turn before the next request."""

    def conclude(self, generation: Generation, *, has_calls: bool) -> None:
        """The last answer of a client's turn is being recorded, on a thread of the database. What is stored here is
        stored with it; a failure costs nothing but that."""

    async def leaving(self) -> None:
        """Returns when the client has left."""
        await asyncio.Future()


SILENT = Subscriber()


END_SECONDS = 5.0


async def stream_to(
    provider: Provider, request: ChatRequest, subscriber: Subscriber, repetitions: RepetitionFilter | None = None
) -> AsyncGenerator[StreamEvent, None]:
    """Stream an answer's events, without repetitions where it continues a cut one. The subscriber hears each first."""
    async with aclosing(provider.stream(request)) as events:
        async for event in events:
            for new in repetitions.passed(event) if repetitions else (event,):
                subscriber.hear(new)
                yield new


class HeadStart:
    """A request that is made at once. Its answer is taken over or dropped, on the event loop that began it.

    The caller makes sure that nothing else is asked in between: the driver makes the same request a moment later, and
    takes the answer over. The events that came until then wait here, and no subscriber hears an event twice.
    """

    def __init__(self, request: ChatRequest, settings: ProviderSettings, subscriber: Subscriber) -> None:
        self._request, self._settings, self._subscriber = request, settings, subscriber
        self._waiting: asyncio.Queue[StreamEvent | Exception | None] = asyncio.Queue()
        self._is_taken = self._has_spoken = False
        self._receiving = asyncio.create_task(self._receive())

    @property
    def is_owed(self) -> bool:
        """Whether the subscriber has heard words that the driver has not taken over yet."""
        return self._has_spoken and not self._is_taken

    def take_over(self, request: ChatRequest, settings: ProviderSettings) -> AsyncGenerator[StreamEvent, None] | None:
        """The whole answer, where the head start made this very request; None where the driver must ask. Once.

        Raises ProviderFailed where the subscriber has heard words of the answer to another request.
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
        """Drop the answer: nobody wants more of it. The closed connection tells the server."""
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
                        # The events after the first one wait until the first is on its way to the client.
                        await asyncio.sleep(0)
        except Exception as error:  # whoever takes it over raises it
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
