"""Redis clients for counters that processes share: short timeouts and one retry, so that nobody waits for long."""

from __future__ import annotations

import logging
from functools import cache

from django.conf import settings
from redis import Redis as WaitingRedis
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.retry import Retry as WaitingRetry

logger = logging.getLogger(__name__)
PATIENCE_SECONDS = 0.5


def client() -> Redis:
    """A client for one event loop. It tries again once, at once: a connection that lay idle may have been closed."""
    return Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=PATIENCE_SECONDS,
        socket_connect_timeout=PATIENCE_SECONDS,
        retry=Retry(NoBackoff(), 1),
    )


@cache
def waiting_client(url: str) -> WaitingRedis:
    """A blocking client, which threads share."""
    retry = WaitingRetry(NoBackoff(), 1)
    return WaitingRedis.from_url(
        url, socket_timeout=PATIENCE_SECONDS, socket_connect_timeout=PATIENCE_SECONDS, retry=retry
    )


class Absence:
    """Whether Redis is away. The log says so when that changes, not with every request."""

    def __init__(self, unlimited: str) -> None:
        self._unlimited, self._is_away = unlimited, False

    def begins(self, error: Exception) -> None:
        if not self._is_away:
            logger.warning("Not limited while Redis is away: %s (%s)", self._unlimited, error)
        self._is_away = True

    def ends(self) -> None:
        if self._is_away:
            logger.warning("Redis is back and limits again: %s", self._unlimited)
        self._is_away = False
