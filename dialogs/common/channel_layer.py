"""How events reach a tab: Channels' own layer, whose receivers outlive Redis, and end when they are told to."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
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
CANCEL_EVERY_SECONDS = 0.1


class ChannelLayer(RedisChannelLayer):
    def create_pool(self, index: int) -> ConnectionPool:
        """A pool whose commands are tried once more, at once: a connection that lay idle may have been closed."""
        return create_pool({**self.hosts[index], "retry": Retry(NoBackoff(), 1, (ConnectionLost,))})

    async def with_listeners(self, groups: Collection[str], *, since: float) -> list[str]:
        """The groups that anybody joined, or joined anew, since this moment, in seconds since the epoch. There is one
        Redis, which is asked once."""
        asked = self.connection(0).pipeline(transaction=False)
        for group in groups:
            asked.zcount(self._group_key(group), since, "+inf")
        return [group for group, listeners in zip(groups, await asked.execute(), strict=True) if listeners]

    async def receive(self, channel: str) -> dict[str, Any]:
        """The next event. A receiver that is cancelled ends, whatever the Redis client does just then."""
        receiving = asyncio.create_task(self._receive(channel))
        try:
            return await asyncio.shield(receiving)
        finally:
            await end(receiving)

    async def _receive(self, channel: str) -> dict[str, Any]:
        """Redis may go and come back: that must close no tab. Its next look makes good what was lost."""
        while True:
            try:
                event: dict[str, Any] = await super().receive(channel)
                return event
            except (RedisError, OSError) as error:
                logger.debug("Could not receive, and try again: %s", error)
                await asyncio.sleep(AGAIN_SECONDS)


async def end(task: asyncio.Task[Any]) -> None:
    """Cancel it until it has ended, even if we are cancelled once more meanwhile.

    The Redis client writes inside `asyncio.wait_for`, which before Python 3.12 forgets a cancellation that comes as the
    writing is done. Channels cancels once and waits: a consumer that failed just then never ended, and its socket
    stayed open with nobody behind it.
    """
    while not task.done():
        task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.wait({task}, timeout=CANCEL_EVERY_SECONDS)
