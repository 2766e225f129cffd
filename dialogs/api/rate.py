"""How often a key may ask: so many requests in any sixty seconds, counted in Redis for all processes together.

Where no limit is set, Redis is not asked. Where Redis does not answer, the request is let in.
"""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary

from django.conf import settings
from redis.asyncio import Redis
from redis.exceptions import RedisError

from dialogs.api.errors import rate_limited
from dialogs.common.shared_redis import Absence, client
from dialogs.models import ApiKey

# The moments of the requests that were admitted within a minute, by Redis's own clock. 0: admitted, and noted; else the
# milliseconds until there is room. What is refused is not noted.
ADMIT = """
local limit, now = tonumber(ARGV[1]), redis.call('TIME')
now = now[1] * 1000 + math.floor(now[2] / 1000)
local oldest = redis.call('LINDEX', KEYS[1], 0)
while oldest and now - oldest >= 60000 do
  redis.call('LPOP', KEYS[1])
  oldest = redis.call('LINDEX', KEYS[1], 0)
end
if redis.call('LLEN', KEYS[1]) >= limit then
  return 60000 - (now - redis.call('LINDEX', KEYS[1], -limit))
end
redis.call('RPUSH', KEYS[1], now)
redis.call('PEXPIRE', KEYS[1], 60000)
return 0
"""
# A client belongs to its event loop. A server has one; tests have many.
_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, Redis] = WeakKeyDictionary()
_absence = Absence("requests per minute")


async def admit(key: ApiKey) -> None:
    """Raises the 429 that says when to come back, where the key has had its requests of this minute."""
    limit = key.requests_per_minute or settings.DOMINDS_API_REQUESTS_PER_MINUTE
    wait = await _milliseconds_to_wait(key, limit) if limit else 0
    if wait:
        raise rate_limited(limit, retry_after=wait / 1000)


async def _milliseconds_to_wait(key: ApiKey, limit: int) -> int:
    try:
        wait = int(await _client().eval(ADMIT, 1, redis_key(key), str(limit)))
    except (RedisError, OSError) as error:
        _absence.begins(error)
        return 0
    _absence.ends()
    return wait


def redis_key(key: ApiKey) -> str:
    return f"dominds:requests:{key.pk}"


def _client() -> Redis:
    loop = asyncio.get_running_loop()
    if loop not in _clients:
        _clients[loop] = client()
    return _clients[loop]
