"""A pool of open providers, so that requests reuse connections.

Connections belong to the event loop that opened them, so each loop has its own pool; web processes and turn workers
have one loop each. A provider that is unused for a minute is closed, and all of them when the loop ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from uuid import uuid4

from redis.asyncio import Redis
from redis.exceptions import RedisError

from dialogs.common.shared_redis import PATIENCE_SECONDS, Absence, client
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


# Slots of a provider with a maximum of concurrent requests, counted in Redis for all processes. A slot is a lease: that
# of a dead process becomes free after a while. Waiting requests are served first come, first served; one that no longer
# polls has left the queue. While Redis is away there is no limit.

ASK_EVERY_SECONDS = 0.3
LEASE_SECONDS = 30.0
# A waiting request that has not polled for so long has left the queue.
GONE_AFTER_SECONDS = 5.0

# Sorted sets, in microseconds of Redis's clock: slots by the end of their lease, waiting requests by arrival, and by
# when they count as gone. Returns 0 if the slot is taken, else the place in the queue.
TAKE = """
local held, line, seen, me = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
local now = redis.call('TIME')
now = now[1] * 1000000 + now[2]
redis.call('ZREMRANGEBYSCORE', held, '-inf', now)
if redis.call('ZSCORE', held, me) then
  return 0
end
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', seen, '-inf', now)) do
  redis.call('ZREM', line, gone)
  redis.call('ZREM', seen, gone)
end
redis.call('ZADD', line, 'NX', now, me)
redis.call('ZADD', seen, now + ARGV[4], me)
local free = math.max(0, ARGV[2] - redis.call('ZCARD', held))
local before = redis.call('ZRANK', line, me)
if before >= free then
  return before - free + 1
end
redis.call('ZREM', line, me)
redis.call('ZREM', seen, me)
redis.call('ZADD', held, now + ARGV[3], me)
return 0
"""
KEEP = """
local now = redis.call('TIME')
return redis.call('ZADD', KEYS[1], 'XX', now[1] * 1000000 + now[2] + ARGV[2], ARGV[1])
"""
OnWait = Callable[[int], Awaitable[None]]
_absence = Absence("requests that a provider gets at once")


async def wait_quietly(_place: int) -> None:
    """The `on_wait` of a caller that shows its place in the queue to nobody."""


@asynccontextmanager
async def slot(provider: str, *, most: int | None, on_wait: OnWait = wait_quietly) -> AsyncIterator[None]:
    """Inside, one of the provider's `most` slots is held; None is no limit, and costs nothing.

    While all are taken, `on_wait` is told the place in line (1: the next) each time that is looked at. What it raises
    ends the wait.
    """
    if most is None:
        yield
        return
    async with client() as redis:
        held = Slot(redis, provider, most)
        try:
            await held.wait(on_wait)
            keeping = asyncio.create_task(held.keep())
            try:
                yield
            finally:
                keeping.cancel()
                await asyncio.wait({keeping}, timeout=PATIENCE_SECONDS)
        finally:
            await held.leave()


class Slot:
    """One request's place in a provider's queue, and then its slot."""

    def __init__(self, redis: Redis, provider: str, most: int) -> None:
        self._redis, self._most, self._me = redis, most, uuid4().hex
        self._keys = [redis_key(provider, part) for part in ("held", "line", "seen")]

    async def wait(self, on_wait: OnWait) -> None:
        while place := await self._take():
            await on_wait(place)
            await asyncio.sleep(ASK_EVERY_SECONDS)

    async def keep(self) -> None:
        """Renew the lease until cancelled."""
        while True:
            await asyncio.sleep(LEASE_SECONDS / 3)
            with suppress(RedisError, OSError):
                await self._redis.eval(KEEP, 1, self._keys[0], self._me, str(_micro(LEASE_SECONDS)))

    async def leave(self) -> None:
        with suppress(RedisError, OSError):
            for key in self._keys:
                await self._redis.zrem(key, self._me)

    async def _take(self) -> int:
        numbers = (self._most, _micro(LEASE_SECONDS), _micro(GONE_AFTER_SECONDS))
        try:
            place = int(await self._redis.eval(TAKE, len(self._keys), *self._keys, self._me, *map(str, numbers)))
        except (RedisError, OSError) as error:
            _absence.begins(error)
            return 0
        _absence.ends()
        return place


def redis_key(provider: str, part: str) -> str:
    return f"dominds:slots:{provider}:{part}"


def _micro(seconds: float) -> int:
    return int(seconds * 1_000_000)
