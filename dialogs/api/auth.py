"""Authenticates requests of `/v1` and the MCP server by their API key, and limits each key's requests in any sixty
seconds, counted in Redis for all processes.

Synchronous, as it reads the database.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from weakref import WeakKeyDictionary

from django.conf import settings
from redis.asyncio import Redis
from redis.exceptions import RedisError

from dialogs.api import errors
from dialogs.api.errors import rate_limited
from dialogs.api.reads.api_keys import key_with
from dialogs.api.writes.api_keys import touch
from dialogs.common.shared_redis import Absence, client
from dialogs.models import ApiKey

# Anthropic's and Azure's clients have headers of their own.
OTHER_HEADERS = ("x-api-key", "api-key")

# Refusals that only a caller with the right secret gets.
REFUSED = {
    ApiKey.State.REVOKED: errors.revoked_key,
    ApiKey.State.EXPIRED: errors.expired_key,
    ApiKey.State.DISABLED: errors.disabled_owner,
}


def secret_in(headers: Mapping[str, str]) -> str:
    """The secret in the headers, or "". The mapping must ignore case or have lower-case names."""
    scheme, _space, secret = headers.get("authorization", "").strip().partition(" ")
    if scheme.lower() == "bearer" and secret.strip():
        return secret.strip()
    return next((found for name in OTHER_HEADERS if (found := headers.get(name, "").strip())), "")


def authenticate(secret: str) -> ApiKey:
    """The key, with its owner. Raises the ApiError that says what is wrong with it. Its use is noted."""
    if not secret:
        raise errors.missing_key()
    key = key_with(secret)
    if key is None:
        raise errors.unknown_key()
    if refused := REFUSED.get(key.state):
        raise refused()
    touch(key)
    return key


def require_chat(key: ApiKey) -> None:
    """Raises where the key may only read."""
    if key.scope == ApiKey.Scope.READ:
        raise errors.insufficient_scope()


def require_read(key: ApiKey) -> None:
    """Raises where the key may only chat: its program sees none of the owner's dialogs."""
    if key.scope == ApiKey.Scope.CHAT_ONLY:
        raise errors.may_only_chat()


def may_use(key: ApiKey, model: str) -> bool:
    """`model` is an id as `GET /v1/models` lists it."""
    return not key.allowed_models or model in key.allowed_models


# A sorted set of the times of the requests admitted in the last minute, by Redis's clock. Returns 0 if the request is
# admitted (and adds it), else the milliseconds to wait.
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
    """Raises the 429 with `Retry-After` where the key has used up its requests of the last minute."""
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
