"""The beat of an hour: missed ones are caught up, none is doubled, and one that failed comes back sooner."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.utils import timezone
from redis import Redis

from dialogs import sweeper
from dialogs.models import Dialog
from health import reward_log
from health.models import Proposal
from tests.dialogs.compacting_builders import a_history, guard
from tests.dialogs.learning.test_proposals import over_hits
from tests.health.test_reward_log import a_row


@pytest.fixture(autouse=True)
def redis(settings: Any, tmp_path: Path) -> Iterator[Redis]:
    settings.DOMINDS_DATA_DIR = tmp_path
    with Redis.from_url(django_settings.REDIS_URL) as client:
        client.delete(sweeper.KEY)
        yield client
        client.delete(sweeper.KEY)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows with each look."""
    found: list[int] = []
    monkeypatch.setattr(sweeper, "run_critic", lambda: found.append(1))
    return found


def test_a_beat_is_kept_once_in_an_hour(redis: Redis, looks: list[int]) -> None:
    assert [sweeper.keep_beat() for _each in range(3)] == [True, False, False]
    assert len(looks) == 1
    assert 3500 < redis.ttl(sweeper.KEY) <= 3600


def test_of_many_workers_at_once_one_keeps_it(looks: list[int]) -> None:
    with ThreadPoolExecutor(8) as workers:
        kept = list(workers.map(lambda _each: sweeper.keep_beat(), range(8)))

    assert sum(kept) == len(looks) == 1


def test_hours_that_were_missed_are_caught_up_with_one_beat(redis: Redis, looks: list[int]) -> None:
    """After a night that everything was off, nothing is left in Redis but that the key has run out."""
    sweeper.keep_beat()
    assert not sweeper.is_due()

    redis.delete(sweeper.KEY)

    assert sweeper.is_due()
    assert [sweeper.keep_beat(), sweeper.keep_beat()] == [True, False]
    assert len(looks) == 2


def test_what_fails_is_tried_again_sooner(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ConnectionError("no database")

    monkeypatch.setattr(sweeper, "run_critic", broken)

    with pytest.raises(ConnectionError):
        sweeper.keep_beat()

    assert 0 < redis.ttl(sweeper.KEY) <= 300


def test_a_beat_proposes_and_forgets_old_rewards(dialog: Dialog) -> None:
    guard(dialog, limit=3500)
    a_history(dialog, pairs=12, sentences=60)
    over_hits(dialog.agent)
    for days in (31, 1):
        reward_log.append(a_row(at=timezone.now() - timedelta(days=days), run=days))

    assert sweeper.keep_beat()

    assert Proposal.objects.get().agent == dialog.agent
    assert [row["stateBefore"]["run"] for row in reward_log.rows()] == [1]
