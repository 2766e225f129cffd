"""A pool of open providers, so that requests reuse connections.

Connections belong to the event loop that opened them, so each loop has its own pool; web processes and turn workers
have one loop each. A provider that is unused for a minute is closed, and all of them when the loop ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from dialogs.providers.addresses import SCRIPTED
from dialogs.providers.base import Provider, ProviderSettings
from dialogs.providers.registry import load, make_provider

IDLE_SECONDS = 60.0


@dataclass
class PooledProvider:
    """An open provider, and how many requests run on it."""

    settings: ProviderSettings
    provider: Provider
    borrowers: int = 0
    retirement: asyncio.TimerHandle | None = None


@dataclass
class LoopPool:
    """The open providers of one event loop. No other coroutine changes them between two awaits."""

    kept: dict[ProviderSettings, PooledProvider] = field(default_factory=dict)
    closing: set[asyncio.Task[None]] = field(default_factory=set)
    ending: AsyncGenerator[None, None] | None = None

    def borrow(self, settings: ProviderSettings) -> PooledProvider:
        kept = self.kept.get(settings) or PooledProvider(settings, make_provider(settings))
        self.kept[settings] = kept
        kept.borrowers += 1
        if kept.retirement:
            kept.retirement.cancel()
        return kept

    def give_back(self, kept: PooledProvider) -> None:
        """Give a provider back without waiting for anything: the caller may just have been cancelled."""
        kept.borrowers -= 1
        if not kept.borrowers:
            kept.retirement = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._retire, kept)

    def _retire(self, kept: PooledProvider) -> None:
        self.kept.pop(kept.settings, None)
        task = asyncio.ensure_future(kept.provider.aclose())
        self.closing.add(task)
        task.add_done_callback(self.closing.discard)

    async def aclose(self) -> None:
        while self.kept:
            _, kept = self.kept.popitem()
            if kept.retirement:
                kept.retirement.cancel()
            await kept.provider.aclose()


_shelves: dict[asyncio.AbstractEventLoop, LoopPool] = {}


@asynccontextmanager
async def borrowed(settings: ProviderSettings) -> AsyncIterator[Provider]:
    """A provider to use but not to close. Raises NotConfigured."""
    if settings.kind == SCRIPTED:
        # A scripted provider has no connection, and reads its file again for each request.
        yield make_provider(settings)
        return
    shelf = await _shelf()
    if settings not in shelf.kept:
        # The first of a kind loads an SDK, which takes seconds: the streams of others go on meanwhile.
        await asyncio.to_thread(load, settings.kind)
    kept = shelf.borrow(settings)
    try:
        yield kept.provider
    finally:
        shelf.give_back(kept)


async def _shelf() -> LoopPool:
    loop = asyncio.get_running_loop()
    if loop not in _shelves:
        # The loop was closed without closing its generators; its sockets are closed with it.
        for closed in [other for other in list(_shelves) if other.is_closed()]:
            _shelves.pop(closed, None)
        shelf = _shelves[loop] = LoopPool()
        shelf.ending = _ending(loop)
        await anext(shelf.ending)
    return _shelves[loop]


async def _ending(loop: asyncio.AbstractEventLoop) -> AsyncGenerator[None, None]:
    """Closes the pool when the loop ends: `asyncio.run` closes all suspended async generators before it closes a
    loop."""
    try:
        yield
    finally:
        await _shelves.pop(loop).aclose()
