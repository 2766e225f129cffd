"""A provider's slots, counted in a real Valkey: never more at once, first come first served, and never in the way."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import uuid4

import pytest
import redis
from django.conf import LazySettings
from django.conf import settings as configured

from dialogs.common.shared_redis import client
from dialogs.providers import pool
from dialogs.providers.pool import Slot, slot
from tests.environment import free_port


@pytest.fixture
def valkey() -> Iterator[redis.Redis]:
    with redis.Redis.from_url(configured.REDIS_URL, decode_responses=True) as client:
        yield client


@pytest.fixture(autouse=True)
def asked_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "ASK_EVERY_SECONDS", 0.02)


@pytest.fixture
def server() -> str:
    """A provider that nobody has asked yet."""
    return f"server-{uuid4().hex}"


@dataclass
class Requests:
    """Requests to one provider: who is being answered, and what those were told who waited."""

    server: str
    most: int | None
    at_once: int = 0
    most_at_once: int = 0
    served: list[str] = field(default_factory=list)
    told: dict[str, list[int]] = field(default_factory=dict)

    async def make(self, name: str, *, seconds: float = 0.05) -> None:
        async def on_wait(place: int) -> None:
            self.told.setdefault(name, []).append(place)

        async with slot(self.server, most=self.most, on_wait=on_wait):
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            self.served.append(name)
            await asyncio.sleep(seconds)
            self.at_once -= 1

    async def make_all(self, *names: str, every: float = 0.0) -> None:
        async with asyncio.TaskGroup() as group:
            for name in names:
                group.create_task(self.make(name))
                await asyncio.sleep(every)


def test_no_more_are_answered_at_once_than_there_are_slots(server: str) -> None:
    requests = Requests(server, most=3)

    asyncio.run(requests.make_all(*map(str, range(12))))

    assert requests.most_at_once == 3
    assert len(requests.served) == 12


def test_who_came_first_is_served_first(server: str) -> None:
    requests = Requests(server, most=1)

    asyncio.run(requests.make_all("Ann", "Bea", "Cem", "Dan", every=0.03))

    assert requests.served == ["Ann", "Bea", "Cem", "Dan"]


def test_who_waits_is_told_the_place_until_it_is_their_turn(server: str) -> None:
    requests = Requests(server, most=1)

    asyncio.run(requests.make_all("Ann", "Bea", "Cem", every=0.01))

    assert "Ann" not in requests.told
    assert sorted(set(requests.told["Bea"])) == [1]
    assert sorted(set(requests.told["Cem"])) == [1, 2]
    assert requests.told["Cem"] == sorted(requests.told["Cem"], reverse=True)


def test_providers_do_not_wait_for_each_other(server: str) -> None:
    async def both() -> None:
        async with slot(server, most=1), asyncio.timeout(1), slot(f"{server}-2", most=1):
            pass

    asyncio.run(both())


def test_without_a_limit_redis_is_not_asked(server: str, settings: LazySettings) -> None:
    settings.REDIS_URL = f"redis://127.0.0.1:{free_port()}/0"
    requests = Requests(server, most=None)

    asyncio.run(requests.make_all(*map(str, range(5))))

    assert requests.most_at_once == 5


def test_who_has_a_slot_and_asks_again_does_not_wait_for_itself(server: str) -> None:
    async def asked_twice() -> list[int]:
        async with client() as redis:
            mine = Slot(redis, server, 1)
            return [await mine._take(), await mine._take()]

    assert asyncio.run(asked_twice()) == [0, 0]


def test_a_slot_that_is_held_long_stays_held(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "LEASE_SECONDS", 0.3)
    requests = Requests(server, most=1)

    async def long_and_short() -> None:
        long = asyncio.create_task(requests.make("long", seconds=1.2))
        await asyncio.sleep(0.1)
        await asyncio.gather(long, requests.make("short"))

    asyncio.run(long_and_short())

    assert requests.most_at_once == 1


def test_the_slot_of_a_dead_process_is_free_after_its_lease(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "LEASE_SECONDS", 0.3)
    requests = Requests(server, most=1)

    async def after_a_death() -> None:
        async with client() as redis:
            await Slot(redis, server, 1).wait(pool.wait_quietly)
        async with asyncio.timeout(5):
            await requests.make("next")

    asyncio.run(after_a_death())

    assert set(requests.told["next"]) == {1}


def test_who_no_longer_asks_holds_nobody_up(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "GONE_AFTER_SECONDS", 0.2)
    requests = Requests(server, most=1)

    async def after_somebody_vanished() -> None:
        async with client() as redis:
            first = asyncio.create_task(requests.make("first", seconds=0.5))
            await asyncio.sleep(0.1)
            assert await Slot(redis, server, 1)._take() == 1
            async with asyncio.timeout(5):
                await asyncio.gather(first, requests.make("second"))

    asyncio.run(after_somebody_vanished())

    assert requests.served == ["first", "second"]


def test_whoever_leaves_the_line_leaves_nothing_behind(server: str, valkey: redis.Redis) -> None:
    async def enough(_place: int) -> None:
        raise TimeoutError

    async def leaving() -> None:
        async with slot(server, most=1):
            with pytest.raises(TimeoutError):
                async with slot(server, most=1, on_wait=enough):
                    pytest.fail("There was no slot.")

    asyncio.run(leaving())

    assert valkey.keys(pool.redis_key(server, "*")) == []


def test_a_cancelled_request_gives_its_slot_back(server: str) -> None:
    requests = Requests(server, most=1)

    async def cancelled() -> None:
        one = asyncio.create_task(requests.make("cancelled", seconds=60))
        await asyncio.sleep(0.1)
        one.cancel()
        async with asyncio.timeout(5):
            await requests.make("next")

    asyncio.run(cancelled())

    assert requests.served == ["cancelled", "next"]


def test_while_redis_is_away_everybody_is_let_in_and_it_is_said_once(
    server: str, settings: LazySettings, caplog: pytest.LogCaptureFixture
) -> None:
    there = settings.REDIS_URL
    settings.REDIS_URL = f"redis://127.0.0.1:{free_port()}/0"
    requests = Requests(server, most=1)

    asyncio.run(requests.make_all("Ann", "Bea", "Cem"))

    assert requests.most_at_once == 3
    assert caplog.text.count("while Redis is away") == 1
    settings.REDIS_URL = there
    asyncio.run(Requests(server, most=1).make("Dan"))
    assert caplog.text.count("Redis is back") == 1
