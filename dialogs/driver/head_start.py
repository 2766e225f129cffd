"""An answer that is asked for while its request is still being stored, so that a client waits for neither.

Whoever begins one knows that nothing may come between: the driver makes the same request a moment later, and takes the
answer over as its own. What was heard until then waits here, and is told to nobody twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from dialogs.driver.seam import Seam
from dialogs.driver.subscriber import Subscriber
from dialogs.providers.base import (
    ChatRequest,
    Provider,
    ProviderFailed,
    ProviderSettings,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
)
from dialogs.providers.pool import borrowed

END_SECONDS = 5.0


async def told(
    provider: Provider, request: ChatRequest, subscriber: Subscriber, seam: Seam | None = None
) -> AsyncGenerator[StreamEvent, None]:
    """The answer as it comes, or what is new of it; the subscriber hears it first."""
    async with aclosing(provider.stream(request)) as events:
        async for event in events:
            for new in seam.passed(event) if seam else (event,):
                subscriber.hear(new)
                yield new


class HeadStart:
    """Begun at once. It is taken over or dropped, on the event loop that began it."""

    def __init__(self, request: ChatRequest, settings: ProviderSettings, subscriber: Subscriber) -> None:
        self._request, self._settings, self._subscriber = request, settings, subscriber
        self._waiting: asyncio.Queue[StreamEvent | Exception | None] = asyncio.Queue()
        self._is_taken = self._has_spoken = False
        self._receiving = asyncio.create_task(self._receive())

    @property
    def is_owed(self) -> bool:
        """Has somebody heard of it what the driver has not taken over yet?"""
        return self._has_spoken and not self._is_taken

    def take_over(self, request: ChatRequest, settings: ProviderSettings) -> AsyncGenerator[StreamEvent, None] | None:
        """The whole answer, where this is what was asked; None where it must be asked for. Once.

        Raises ProviderFailed where somebody heard the answer to something else.
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
        """Nobody wants more of it. The closed connection tells the server."""
        if self._receiving.cancel():
            await asyncio.wait({self._receiving}, timeout=END_SECONDS)

    async def _receive(self) -> None:
        try:
            async with (
                borrowed(self._settings) as provider,
                aclosing(told(provider, self._request, self._subscriber)) as events,
            ):
                async for event in events:
                    self._waiting.put_nowait(event)
                    if not self._has_spoken and isinstance(event, TextDelta | ReasoningDelta):
                        self._has_spoken = True
                        # What came along with the first word can wait until that is on its way.
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
