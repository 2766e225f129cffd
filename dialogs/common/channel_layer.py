"""Channels' Redis layer, changed: receivers survive a Redis failure and can be cancelled, and an event takes three
requests to Redis in place of nine."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Any

from channels_redis.core import RedisChannelLayer
from channels_redis.utils import create_pool
from redis.asyncio import ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as ConnectionLost
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)
AGAIN_SECONDS = 0.5
# To the queue of each process that has tabs among the channels, unless it has stopped taking from it.
TELL = """
for at, queue in ipairs(KEYS) do
    if redis.call('ZCARD', queue) < tonumber(ARGV[2]) then
        redis.call('ZADD', queue, ARGV[1], ARGV[3 + at])
        redis.call('EXPIRE', queue, ARGV[3])
    end
end
"""
CANCEL_EVERY_SECONDS = 0.1


class ChannelLayer(RedisChannelLayer):
    def create_pool(self, index: int) -> ConnectionPool:
        """A pool whose commands are tried once more, at once: a connection that lay idle may have been closed."""
        return create_pool({**self.hosts[index], "retry": Retry(NoBackoff(), 1, (ConnectionLost,))})

    async def with_listeners(self, groups: Collection[str], *, since: float) -> dict[str, list[str]]:
        """The groups that anybody joined since this time (seconds since the epoch), with their channels. One
        request."""
        asked = self.connection(0).pipeline(transaction=False)
        for group in groups:
            asked.zrangebyscore(self._group_key(group), since, "+inf")
        found = zip(groups, await asked.execute(), strict=True)
        return {group: [name.decode() for name in channels] for group, channels in found if channels}

    async def tell(self, events: Iterable[tuple[Collection[str], dict[str, Any]]]) -> None:
        """Send each event to its channels, in one request to Redis: Channels makes four for each event."""
        asked = self.connection(0).pipeline(transaction=False)
        for channels, event in events:
            _connections, messages, _capacities = self._map_channel_keys_to_connection(channels, event)
            asked.eval(TELL, len(messages), *messages, time.time(), self.capacity, self.expiry, *messages.values())
        await asked.execute()

    async def receive_single(self, channel: str) -> tuple[Any, dict[str, Any]]:
        """The next event of a queue; that of a process brings what all its tabs are told, one after the other.

        Channels keeps a copy of each until it is heard, in three steps more. Ours are hints and states, and who ends in
        between takes the tabs along.
        """
        found = None
        while found is None:
            found = await self.connection(0).bzpopmin(self.prefix + channel, timeout=self.brpop_timeout)
        event: dict[str, Any] = self.deserialize(found[1])
        return event.pop("__asgi_channel__", channel), event

    async def receive(self, channel: str) -> dict[str, Any]:
        """The next event. A receiver that is cancelled ends, whatever the Redis client does just then."""
        receiving = asyncio.create_task(self._receive(channel))
        try:
            return await asyncio.shield(receiving)
        finally:
            await end(receiving)

    async def _receive(self, channel: str) -> dict[str, Any]:
        """Redis may fail and come back: no tab's socket closes by that. The tab's next poll brings what was lost."""
        while True:
            try:
                event: dict[str, Any] = await super().receive(channel)
                return event
            except (RedisError, OSError) as error:
                logger.debug("Could not receive, and try again: %s", error)
                await asyncio.sleep(AGAIN_SECONDS)


async def end(task: asyncio.Task[Any]) -> None:
    """Cancel a task until it has ended, even if this coroutine is cancelled once more meanwhile.

    The Redis client writes inside `asyncio.wait_for`, which before Python 3.12 forgets a cancellation that comes as the
    writing is done. Channels cancels once and waits: a consumer that failed just then never ended, and its socket
    stayed open with nobody behind it.
    """
    while not task.done():
        task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.wait({task}, timeout=CANCEL_EVERY_SECONDS)
