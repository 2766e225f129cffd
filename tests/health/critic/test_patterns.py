"""Patterns: how often is too often, within a day and of one agent."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from health.critic.replay import COHERENCE_DROP, LEAST, Finding, PastEvent, findings

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
DAY = timedelta(hours=24)


def events(code: str, count: int, *, agent_id: int = 1, hours_ago: float = 1) -> list[PastEvent]:
    return [PastEvent(code=code, agent_id=agent_id, at=NOW - timedelta(hours=hours_ago)) for _each in range(count)]


@pytest.mark.parametrize(
    ("code", "least"),
    [
        ("TOKEN_LIMIT_EXCEEDED", 3),
        ("RECOVERY_TRIGGERED", 4),
        ("COHERENCE_DROP", 3),
        ("OVER_HIT", 3),
        ("PROVIDER_OVERFLOW", 3),
        ("BREAKER_FAILED", 3),
    ],
)
def test_so_many_of_a_code_are_a_pattern_and_one_less_is_none(code: str, least: int) -> None:
    assert findings(events(code, least), now=NOW) == (Finding(code=code, agent_id=1, count=least),)
    assert findings(events(code, least - 1), now=NOW) == ()


@pytest.mark.parametrize(
    ("age", "counts"), [(timedelta(hours=24, microseconds=-1), True), (timedelta(hours=24), False)]
)
def test_what_is_older_than_a_day_counts_for_nothing(age: timedelta, counts: bool) -> None:
    oldest = PastEvent(code="TOKEN_LIMIT_EXCEEDED", agent_id=1, at=NOW - age)

    assert bool(findings([*events("TOKEN_LIMIT_EXCEEDED", 2), oldest], now=NOW)) is counts


def test_each_agent_is_counted_by_itself() -> None:
    happened = events(COHERENCE_DROP, 2) + events(COHERENCE_DROP, 2, agent_id=2)

    assert findings(happened, now=NOW) == ()


def test_codes_are_not_added_up() -> None:
    assert findings([one for code in LEAST for one in events(code, 2)], now=NOW) == ()


def test_other_codes_are_no_patterns() -> None:
    assert findings(events("RUN_SKIPPED", 50), now=NOW) == ()


def test_the_most_frequent_comes_first() -> None:
    happened = events("OVER_HIT", 3) + events("OVER_HIT", 9, agent_id=2)

    assert [found.agent_id for found in findings(happened, now=NOW)] == [2, 1]
