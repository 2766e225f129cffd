"""Slots of a provider with a maximum of concurrent requests, counted in Redis for all processes.

A slot is a lease: that of a dead process becomes free after a while. Waiting requests are served first come, first
served; one that no longer polls has left the queue. While Redis is away there is no limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from uuid import uuid4

from redis.asyncio import Redis
from redis.exceptions import RedisError

from dialogs.common.shared_redis import PATIENCE_SECONDS, Absence, client

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
