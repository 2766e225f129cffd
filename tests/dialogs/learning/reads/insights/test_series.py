"""What the chart draws: each row where there are few, the most of each stretch of time where there are many."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import User

from dialogs.learning.reads import series as module
from dialogs.learning.reads.series import Scope, Series, patterns, series
from dialogs.models import Dialog
from health.models import HealthReading, Proposal
from tests.dialogs.compacting_builders import guard
from tests.dialogs.learning.reads.insights.conftest import Maker


def drawn(dialog: Dialog, alice: User, now: datetime, *, days: int | None = 7) -> Series:
    scope = Scope(owner_id=alice.pk, since=now - timedelta(days=days) if days else None)
    return series(scope, agent=dialog.agent, llm=dialog.llm, now=now)


def test_few_rows_stand_for_themselves(
    dialog: Dialog, alice: User, now: datetime, measured: Maker, compacted: Maker
) -> None:
    measured(300, ago=timedelta(hours=2))
    measured(900, ago=timedelta(hours=1))
    compacted(ago=timedelta(minutes=30))

    found = drawn(dialog, alice, now)

    assert [(point.at, point.values) for point in found.tokens] == [
        (now - timedelta(hours=2), (300,)),
        (now - timedelta(hours=1), (900,)),
    ]
    assert [point.values for point in found.marks] == [(4500, 3420)]


def test_of_many_rows_the_most_of_each_hour_is_kept(
    dialog: Dialog, alice: User, now: datetime, measured: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_POINTS", 2)
    measured(300)
    measured(700)
    measured(500)
    hour = datetime.fromisoformat("2026-11-20T10:00:00+00:00")
    for at, reading in enumerate(HealthReading.objects.order_by("pk")):
        HealthReading.objects.filter(pk=reading.pk).update(read_at=hour + timedelta(minutes=40 * at))

    found = drawn(dialog, alice, hour + timedelta(days=2))

    assert [(point.at, point.count, point.values) for point in found.tokens] == [
        (hour, 2, (700,)),
        (hour + timedelta(hours=1), 1, (500,)),
    ]


def test_however_long_it_goes_back_the_points_are_bounded(
    dialog: Dialog, alice: User, now: datetime, measured: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_POINTS", 3)
    for day in range(10):
        measured(100 + day, ago=timedelta(days=40 * day))

    found = drawn(dialog, alice, now, days=None)

    assert 1 < len(found.tokens) <= 3
    assert max(point.values for point in found.tokens) == (109,)
    assert sum(point.count for point in found.tokens) == 10


def test_the_limit_is_what_it_was_when_it_mattered_and_what_it_is_now(
    dialog: Dialog, alice: User, now: datetime, happened: Maker, compacted: Maker
) -> None:
    guard(dialog, limit=6000)
    happened("OVER_HIT", ago=timedelta(hours=5), limit=4000)
    happened("OVER_HIT", ago=timedelta(hours=4), limit=4000)
    compacted(ago=timedelta(hours=3), limit_tokens=5000)

    found = drawn(dialog, alice, now)

    assert [point.values[0] for point in found.limits] == [4000, 5000, 6000]
    assert found.limits[-1].at == now


def test_a_compaction_that_changed_nothing_is_no_mark(
    dialog: Dialog, alice: User, now: datetime, compacted: Maker
) -> None:
    compacted(status="skipped", estimated_after=4500)

    assert drawn(dialog, alice, now).marks == ()


@pytest.mark.parametrize("trigger", ["manual", "reset", "overflow"])
def test_what_a_compaction_aimed_at_that_no_guard_began_is_no_limit_in_force(
    dialog: Dialog, alice: User, now: datetime, compacted: Maker, happened: Maker, trigger: str
) -> None:
    guard(dialog, limit=6000)
    compacted(trigger=trigger, limit_tokens=2000)
    happened("TOKEN_LIMIT_EXCEEDED", limit=2000)

    assert [point.values for point in drawn(dialog, alice, now).limits] == [(6000,)]


def test_the_chart_is_as_wide_as_its_data_whatever_the_period(
    dialog: Dialog, alice: User, now: datetime, measured: Maker
) -> None:
    measured(300, ago=timedelta(hours=5))
    measured(900, ago=timedelta(hours=2))

    found = drawn(dialog, alice, now, days=30)

    assert (found.start, found.end) == (now - timedelta(hours=5), now - timedelta(hours=2))


# Patterns on the page are those that the critic acts on, of one's own dialogs.


def test_three_in_a_day_are_a_pattern_of_whose_dialogs_they_are(
    dialog: Dialog, alice: User, bob: User, now: datetime, happened: Maker
) -> None:
    for hours in (1, 2, 3):
        happened("TOKEN_LIMIT_EXCEEDED", ago=timedelta(hours=hours))
    for _each in range(2):
        happened("OVER_HIT", ago=timedelta(hours=1))
    happened("OVER_HIT", ago=timedelta(hours=25))

    (found,) = patterns(alice.pk, now=now)

    assert (found.agent, found.code, found.finding.count) == (dialog.agent, "TOKEN_LIMIT_EXCEEDED", 3)
    assert patterns(bob.pk, now=now) == []
    assert len(patterns(None, now=now)) == 1


def test_incoherent_results_are_one_too_and_have_no_code_of_events(
    alice: User, now: datetime, compacted: Maker
) -> None:
    for coherence in (0.64, 0.5, 0.2, 0.65):
        compacted(coherence=coherence)

    (found,) = patterns(alice.pk, now=now)

    assert (found.finding.code, found.finding.count, found.code) == ("COHERENCE_DROP", 3, "")


def test_it_knows_the_proposal_that_waits(dialog: Dialog, alice: User, now: datetime, happened: Maker) -> None:
    for _each in range(3):
        happened("OVER_HIT")
    Proposal.objects.create(kind="limit", agent=dialog.agent, status="dismissed")
    waiting = Proposal.objects.create(kind="limit", agent=dialog.agent)

    (found,) = patterns(alice.pk, now=now)

    assert found.proposal_id == waiting.pk
