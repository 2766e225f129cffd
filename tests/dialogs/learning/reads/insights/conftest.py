"""What the figures are of: measured answers, events and finished compactions of Alice's dialog, at chosen moments."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from dialogs.models import Dialog
from dialogs.turns.writes.events import log
from dialogs.turns.writes.messages import post_message
from health.models import CompactionRun, ContextEvent, HealthReading
from tests.builders import a_reading
from tests.dialogs.compaction_runs import a_run, a_step

Maker = Callable[..., Any]


@pytest.fixture
def now() -> datetime:
    return timezone.now()


@pytest.fixture
def measured(dialog: Dialog, now: datetime) -> Maker:
    """`measured(900, ago=timedelta(hours=3))`: an answer whose prompt the provider counted."""
    post_message(dialog=dialog, content="Hello")

    def make(tokens: int, *, ago: timedelta = timedelta()) -> None:
        reading = a_reading(dialog, tokens)
        HealthReading.objects.filter(pk=reading.pk).update(read_at=now - ago)

    return make


@pytest.fixture
def happened(dialog: Dialog, now: datetime) -> Maker:
    def make(code: str, *, ago: timedelta = timedelta(), **facts: Any) -> None:
        event = log(code, dialog, **facts)
        ContextEvent.objects.filter(pk=event.pk).update(happened_at=now - ago)

    return make


@pytest.fixture
def compacted(dialog: Dialog, now: datetime) -> Maker:
    """A compaction that has ended, from ≈4,500 to ≈3,420 in two seconds unless said otherwise."""

    def make(*, ago: timedelta = timedelta(), seconds: float = 2, **fields: Any) -> CompactionRun:
        ended = now - ago
        values = {"status": "applied", "estimated_before": 4500, "estimated_after": 3420}
        times = {"steps": [a_step("trim_payloads", 4500, 3420, ms=1000 * seconds)], "finished_at": ended}
        run = a_run(dialog, **(values | times | fields))
        CompactionRun.objects.filter(pk=run.pk).update(queued_at=ended)
        return run

    return make
