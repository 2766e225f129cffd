"""What the meter shows: the newest reading, why it may be stale, and what stays when a number is missing."""

from __future__ import annotations

from uuid import uuid4

import pytest

from dialogs.models import Dialog, Generation
from dialogs.turns.writes.messages import post_message
from health.models import HealthReading
from health.monitor.levels import Configured, Usage, UsageUnavailable
from health.selectors import Meter, history, history_before, latest_levels, meter
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
    return meter(dialog.pk, configured=configured, window_source="server", llm_name=dialog.llm.slug)


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


@pytest.mark.parametrize(("prompt_tokens", "level"), [(500, "healthy"), (501, "caution"), (901, "critical")])
def test_the_levels_are_the_monitors(asked: Dialog, prompt_tokens: int, level: str) -> None:
    measured(asked, prompt_tokens)

    assert shown(asked).level == level


def test_more_than_the_window_is_said_but_not_drawn(asked: Dialog) -> None:
    measured(asked, 1070)

    seen = shown(asked)

    assert (seen.percent_text, seen.fill) == ("107 %", 1.0)


def test_without_usage_the_meter_is_unknown_and_names_the_last_good_reading(asked: Dialog) -> None:
    measured(asked, 250)
    measured(asked, None)

    seen = shown(asked)

    assert (seen.level, seen.reason, seen.prompt_tokens, seen.percent_text) == (
        "unknown",
        "usage_unavailable",
        None,
        "",
    )
    assert seen.last_good is not None
    assert (seen.last_good.prompt_tokens, seen.last_good.generation_number) == (250, 1)


def test_a_reading_without_usage_holds_no_number(asked: Dialog) -> None:
    measured(asked, None)

    row = HealthReading.objects.values().get()

    kept = {name for name, value in row.items() if isinstance(value, int | float) and not isinstance(value, bool)}
    assert kept == {"generation_id"}


def test_after_a_failure_the_last_reading_stays_and_says_so(asked: Dialog) -> None:
    measured(asked, 250)
    a_generation(asked, status="failed", finished_at="2026-01-01T00:00:00Z")

    seen = shown(asked)

    assert (seen.level, seen.prompt_tokens, seen.stale) == ("healthy", 250, "failed")


def test_another_llm_has_no_reading_yet(asked: Dialog) -> None:
    measured(asked, 250, llm_name="other/model")

    seen = shown(asked)

    assert (seen.level, seen.stale, seen.prompt_tokens) == ("unknown", "llm_changed", None)
    assert seen.last_good is not None


def test_without_a_window_there_is_no_percent(dialog: Dialog) -> None:
    seen = shown(dialog, Configured())

    assert (seen.context_window, seen.optimal_tick, seen.percent_text) == (None, None, "")


def test_a_ceiling_outside_the_window_has_no_tick(dialog: Dialog) -> None:
    assert shown(dialog, Configured(context_length=1000)).optimal_tick is None  # 100,000 by default


def test_the_history_runs_from_old_to_new_with_gaps(asked: Dialog) -> None:
    for prompt_tokens in (100, None, 300):
        measured(asked, prompt_tokens)

    points = history(asked.pk)

    assert [(point.number, point.prompt_tokens, point.level) for point in points] == [
        (1, 100, "healthy"),
        (2, None, "unknown"),
        (3, 300, "healthy"),
    ]


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
