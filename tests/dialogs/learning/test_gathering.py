"""What the critic is told of what happened: which events and which results, of whom and how long ago."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from dialogs.learning.writes import happened
from dialogs.models import Dialog
from dialogs.turns.writes.events import log
from health.models import ContextEvent
from tests.dialogs.compaction_runs import a_run

NOW = timezone.now()


def codes() -> list[str]:
    return [one.code for one in happened(NOW)]


@pytest.mark.parametrize(("coherence", "told"), [(0.649, ["COHERENCE_DROP"]), (0.65, []), (None, [])])
def test_a_result_below_065_is_a_drop(dialog: Dialog, coherence: float | None, told: list[str]) -> None:
    a_run(dialog, status="applied", coherence=coherence, finished_at=NOW)

    assert codes() == told


@pytest.mark.parametrize(("age", "told"), [(timedelta(hours=23, minutes=59), 2), (timedelta(hours=24, minutes=1), 0)])
def test_what_is_older_than_a_day_is_not_told(dialog: Dialog, age: timedelta, told: int) -> None:
    a_run(dialog, status="applied", coherence=0.1, finished_at=NOW - age)
    log("OVER_HIT", dialog)
    ContextEvent.objects.update(happened_at=NOW - age)

    assert len(codes()) == told


def test_what_belongs_to_no_agent_is_not_told(dialog: Dialog) -> None:
    log("OVER_HIT", dialog)
    ContextEvent.objects.update(agent=None)

    assert codes() == []
