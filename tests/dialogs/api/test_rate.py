"""Requests per minute, counted in a real Valkey: for each key, across event loops, and never in the way."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from django.conf import settings as configured
from django.contrib.auth.models import User

from dialogs.api import auth
from dialogs.api.errors import ApiError
from dialogs.api.writes.api_keys import create_key
from dialogs.models import ApiKey
from tests.environment import free_port

MINUTE = 60_000


@pytest.fixture
def valkey() -> Iterator[redis.Redis]:
    with redis.Redis.from_url(configured.REDIS_URL, decode_responses=True) as client:
        yield client


@pytest.fixture
def key(alice: User, valkey: redis.Redis) -> ApiKey:
    """At most three requests a minute, and none yet."""
    key = create_key(owner=alice, name="Laptop", requests_per_minute=3)[0]
    valkey.delete(auth.redis_key(key))
    return key


async def outcome(key: ApiKey) -> ApiError | None:
    try:
        await auth.admit(key)
    except ApiError as refused:
        return refused
    return None


async def outcomes(key: ApiKey, times: int) -> list[ApiError | None]:
    return list(await asyncio.gather(*(outcome(key) for _ in range(times))))


def age_first(valkey: redis.Redis, key: ApiKey, milliseconds: int) -> None:
    """As if the first request had come that much earlier."""
    moment = int(valkey.lindex(auth.redis_key(key), 0))
    valkey.lset(auth.redis_key(key), 0, moment - milliseconds)


def test_of_many_requests_at_once_no_more_than_the_limit_get_in_and_processes_count_together(key: ApiKey) -> None:
    found = [asyncio.run(outcomes(key, times)).count(None) for times in (2, 20)]

    assert found == [2, 1]


def test_a_refusal_says_when_to_come_back(key: ApiKey, valkey: redis.Redis) -> None:
    asyncio.run(outcomes(key, 3))
    age_first(valkey, key, 50_000)

    refused = asyncio.run(outcome(key))

    assert refused is not None
    assert (refused.status, refused.code) == (429, "rate_limit_exceeded")
    assert 1 <= int(refused.headers["Retry-After"]) <= 10
    assert "3 requests a minute" in refused.message


def test_room_comes_back_a_minute_after_each_request_not_all_at_once(key: ApiKey, valkey: redis.Redis) -> None:
    asyncio.run(outcomes(key, 3))
    age_first(valkey, key, MINUTE)

    found = asyncio.run(outcomes(key, 2))

    assert found.count(None) == 1


def test_no_more_is_kept_than_a_minute_of_requests_and_that_goes_away_by_itself(
    key: ApiKey, valkey: redis.Redis
) -> None:
    asyncio.run(outcome(key))
    age_first(valkey, key, MINUTE)

    asyncio.run(outcome(key))

    assert valkey.llen(auth.redis_key(key)) == 1
    assert 0 < valkey.pttl(auth.redis_key(key)) <= MINUTE


def test_a_refused_request_does_not_lengthen_the_wait(key: ApiKey, valkey: redis.Redis) -> None:
    asyncio.run(outcomes(key, 3))
    noted = valkey.lrange(auth.redis_key(key), 0, -1)

    asyncio.run(outcomes(key, 5))

    assert valkey.lrange(auth.redis_key(key), 0, -1) == noted


def test_a_lowered_limit_holds_at_once(key: ApiKey) -> None:
    asyncio.run(outcomes(key, 2))
    key.requests_per_minute = 1

    assert asyncio.run(outcome(key)) is not None


def test_one_keys_requests_are_not_anothers(key: ApiKey, alice: User, valkey: redis.Redis) -> None:
    other = create_key(owner=alice, name="Phone", requests_per_minute=3)[0]
    valkey.delete(auth.redis_key(other))
    asyncio.run(outcomes(key, 3))

    assert asyncio.run(outcome(other)) is None


def test_the_servers_default_holds_for_keys_without_a_limit(key: ApiKey, settings: Any) -> None:
    key.requests_per_minute = None
    settings.DOMINDS_API_REQUESTS_PER_MINUTE = 2

    found = asyncio.run(outcomes(key, 5))

    assert found.count(None) == 2


def test_without_a_limit_redis_is_not_asked(key: ApiKey, valkey: redis.Redis) -> None:
    key.requests_per_minute = None

    found = asyncio.run(outcomes(key, 10))

    assert found.count(None) == 10
    assert not valkey.exists(auth.redis_key(key))


def test_while_redis_is_away_everyone_gets_in_and_it_is_said_once(
    key: ApiKey, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    there = settings.REDIS_URL
    settings.REDIS_URL = f"redis://127.0.0.1:{free_port()}/0"

    found = asyncio.run(outcomes(key, 6))

    assert found.count(None) == 6
    assert caplog.text.count("while Redis is away") == 1
    settings.REDIS_URL = there
    assert asyncio.run(outcomes(key, 6)).count(None) == 3
    assert caplog.text.count("Redis is back") == 1
