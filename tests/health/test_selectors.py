"""What the meter shows: the newest reading, why it may be stale, and what stays when a number is missing."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from dialogs.models import Dialog, Generation
from dialogs.transcript.reads.dialogs import newest_reading
from dialogs.turns.writes.messages import post_message
from health.models import HealthReading
from health.monitor.levels import Configured, Usage, UsageUnavailable
from health.selectors import Meter, history_before, latest_levels, meter
from health.services import record_reading
from tests.builders import a_generation

WINDOW = Configured(context_length=1000, optimal_max_tokens=500)


@pytest.fixture
def asked(dialog: Dialog) -> Dialog:
    post_message(dialog=dialog, content="Hello")
    dialog.refresh_from_db()
    return dialog


def measured(dialog: Dialog, prompt_tokens: int | None, *, cached: int | None = None, **fields: object) -> Generation:
    """A finished generation and its reading; None means that the provider sent no usage."""
    generation = a_generation(
        dialog, **({"status": "finished", "cached_tokens": cached, "completion_tokens": 7} | fields)
    )
    usage = (
        UsageUnavailable()
        if prompt_tokens is None
        else Usage(prompt_tokens=prompt_tokens, completion_tokens=7, total_tokens=prompt_tokens + 7)
    )
    record_reading(generation_id=generation.pk, usage=usage, configured=WINDOW, window_source="server")
    return generation


def shown(dialog: Dialog, configured: Configured = WINDOW) -> Meter:
    newest: Any = newest_reading.first(dialog.pk)
    failed = newest is not None and newest.failed
    return meter(newest, failed=failed, configured=configured, window_source="server", llm_name=dialog.llm.slug)


def test_before_the_first_answer_the_meter_is_unknown_and_shows_the_ceilings(dialog: Dialog) -> None:
    seen = shown(dialog)

    assert (seen.level, seen.stale, seen.prompt_tokens) == ("unknown", "none_yet", None)
    assert (seen.context_window, seen.optimal_max_tokens, seen.critical_max_tokens) == (1000, 500, 900)


def test_the_meter_shows_the_newest_reading(asked: Dialog) -> None:
    measured(asked, 250, cached=40)

    seen = shown(asked)

    assert (seen.level, seen.prompt_tokens, seen.percent_text, seen.fill) == ("healthy", 250, "25 %", 0.25)
    assert (seen.cached_tokens, seen.completion_tokens, seen.generation_number) == (40, 7, 1)
    assert (seen.window_source, seen.optimal_tick, seen.critical_tick) == ("server", 0.5, 0.9)
    assert (seen.optimal_configured, seen.critical_configured) == (True, False)


def test_a_reading_without_usage_holds_no_number(asked: Dialog) -> None:
    measured(asked, None)

    row = HealthReading.objects.values().get()

    kept = {name for name, value in row.items() if isinstance(value, int | float) and not isinstance(value, bool)}
    assert kept == {"generation_id"}


def test_the_history_keeps_the_newest(asked: Dialog) -> None:
    for prompt_tokens in (100, 200, 300):
        measured(asked, prompt_tokens)

    assert [point.prompt_tokens for point in history_before(asked.pk, limit=2, before=0)] == [200, 300]


def test_a_list_shows_the_level_of_each_newest_reading(asked: Dialog) -> None:
    measured(asked, 100)
    measured(asked, 950)
    strange = uuid4()

    assert latest_levels([asked.pk, strange]) == {asked.pk: "critical"}
    assert latest_levels([]) == {}
