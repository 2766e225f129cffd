"""The data of the meter, its panel and its chart. Takes dialogs by id: this app never imports that one."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import BigIntegerField, Max, QuerySet, UUIDField

from dominds.prepared import Many, prepared
from health.models import HealthReading
from health.monitor.levels import Configured, clamped, context_window, percent_text, thresholds

# Why a reading does not describe the dialog's present context.
LEFT = ("compacted", "undone", "new_course", "other_branch", "other_window")
# Columns of a generation that no meter shows and that may be long.
LARGE = tuple(
    f"generation__{name}" for name in ("manifest", "partial_text", "partial_reasoning", "usage_raw", "error_message")
)


SHOWN_POINTS = 200


@dataclass(frozen=True, kw_only=True)
class Meter:
    """The health of a dialog as shown. Each number is the provider's or a person's; None: unknown.

    `stale` says why the reading is outdated: "none_yet", "failed" (a later generation has none), "llm_changed", the
    context has changed ("compacted", "undone", "new_course", "other_branch"), or the LLM's window ("other_window").
    Then its numbers stay, its level is unknown. `last_good` is the newest reading with a level, if this one has none.
    """

    level: str
    reason: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    context_window: int | None = None
    window_source: str = ""
    percent_text: str = ""
    fill: float | None = None
    optimal_max_tokens: int | None = None
    optimal_configured: bool = False
    critical_max_tokens: int | None = None
    critical_configured: bool = False
    # What compaction goes by, where that is below the window: set by an admin, or learned from refusals and cuts.
    limit: int | None = None
    limit_is_learned: bool = False
    # Generations are numbered within their course.
    course_number: int | None = None
    generation_number: int | None = None
    llm_name: str = ""
    read_at: datetime | None = None
    stale: str = ""
    last_good: Meter | None = None

    @property
    def is_left(self) -> bool:
        """Are its numbers of a former context of the dialog?"""
        return self.stale in LEFT

    @property
    def optimal_tick(self) -> float | None:
        return _tick(self.optimal_max_tokens, self.context_window)

    @property
    def critical_tick(self) -> float | None:
        return _tick(self.critical_max_tokens, self.context_window)

    @property
    def value(self) -> int | None:
        """The tokens limited to 0 to the window, for a drawing; None if either is unknown."""
        if self.prompt_tokens is None or self.context_window is None:
            return None
        return min(self.prompt_tokens, self.context_window)


@dataclass(frozen=True, kw_only=True)
class Point:
    """One generation in the chart and its table."""

    course_number: int = 1
    number: int
    generation_id: int
    level: str
    prompt_tokens: int | None
    context_window: int | None
    optimal_max_tokens: int | None
    critical_max_tokens: int | None
    read_at: datetime
    # Why the level is unknown, if it is.
    reason: str = ""
    percent_text: str = ""
    llm_name: str = ""


def meter(
    newest: HealthReading | None,
    *,
    configured: Configured,
    window_source: str,
    llm_name: str,
    left: str = "",
    failed: bool = False,
) -> Meter:
    """The meter of a dialog with this newest reading and the present LLM, which the other arguments describe.

    `left` says why the reading is of a former context; `failed`: a later generation has no reading.
    """
    shown = meter_of(newest, configured=configured, window_source=window_source, llm_name=llm_name, left=left)
    if newest is None or shown.is_left:
        return shown
    if shown.stale or newest.level == HealthReading.Level.UNKNOWN:
        return replace(shown, last_good=_last_good(newest.generation.dialog_id))
    return replace(shown, stale="failed") if failed else shown


def meter_of(
    newest: HealthReading | None, *, configured: Configured, window_source: str, llm_name: str, left: str
) -> Meter:
    """The meter of the newest reading, without a query, so without earlier readings and later failures."""
    limits = _limits_now(configured, window_source=window_source, llm_name=llm_name)
    if newest is None:
        return replace(limits, stale="none_yet")
    shown = _from_reading(newest)
    if shown.llm_name != llm_name:
        return replace(limits, stale="llm_changed")
    if newest.level == HealthReading.Level.UNKNOWN:
        return replace(
            limits,
            reason=shown.reason,
            prompt_tokens=shown.prompt_tokens,
            completion_tokens=shown.completion_tokens,
            cached_tokens=shown.cached_tokens,
            course_number=shown.course_number,
            generation_number=shown.generation_number,
            read_at=shown.read_at,
        )
    if not left and limits.context_window not in (None, shown.context_window):
        left = "other_window"
    return replace(shown, level=HealthReading.Level.UNKNOWN, stale=left) if left else shown


def _readings(dialog_id: Any):  # type: ignore[no-untyped-def]  # a QuerySet over a table named by string
    return (
        HealthReading.objects.filter(generation__dialog_id=dialog_id)
        .select_related("generation__course")
        .defer(*LARGE)
        .order_by("-generation_id")
    )


def _last_good(dialog_id: UUID) -> Meter | None:
    found = _readings(dialog_id).exclude(level=HealthReading.Level.UNKNOWN).first()
    return _from_reading(found) if found else None


def _limits_now(configured: Configured, *, window_source: str, llm_name: str) -> Meter:
    """A meter without a reading: unknown, but with the ceilings for the next reading."""
    window = context_window(configured)
    blank = Meter(level=HealthReading.Level.UNKNOWN, llm_name=llm_name)
    if window is None:
        return blank
    limits = thresholds(configured, window=window)
    return replace(
        blank,
        context_window=window,
        window_source=window_source,
        optimal_max_tokens=limits.optimal_max_tokens,
        optimal_configured=limits.optimal_configured,
        critical_max_tokens=limits.critical_max_tokens,
        critical_configured=limits.critical_configured,
    )


def _tick(ceiling: int | None, window: int | None) -> float | None:
    """The place of a ceiling on the bar; None if it is outside the window."""
    if ceiling is None or not window or ceiling > window:
        return None
    return ceiling / window


def _from_reading(reading: HealthReading) -> Meter:
    generation = reading.generation
    share = reading.hard_util
    return Meter(
        level=reading.level,
        reason=reading.reason,
        prompt_tokens=reading.prompt_tokens,
        completion_tokens=generation.completion_tokens,
        cached_tokens=generation.cached_tokens,
        context_window=reading.context_window,
        window_source=reading.window_source,
        percent_text="" if share is None else percent_text(share),
        fill=None if share is None else clamped(share),
        optimal_max_tokens=reading.optimal_max_tokens,
        optimal_configured=reading.optimal_configured,
        critical_max_tokens=reading.critical_max_tokens,
        critical_configured=reading.critical_configured,
        course_number=generation.course.number,
        generation_number=generation.number,
        llm_name=generation.llm_name,
        read_at=reading.read_at,
    )


def history(dialog_id: UUID) -> tuple[Point, ...]:
    """The newest readings of a dialog, oldest first."""
    return _points(_newest_readings(dialog_id))


def history_before(dialog_id: UUID, *, limit: int, before: int) -> tuple[Point, ...]:
    """The points of the generations before the one with the id `before`; 0 means the newest."""
    found = _readings(dialog_id)
    return _points((found.filter(generation_id__lt=before) if before else found)[:limit])


@prepared(UUIDField())
def _newest_readings(dialog_id: Any) -> QuerySet[HealthReading]:
    return _readings(dialog_id)[:SHOWN_POINTS]


def _points(newest: Iterable[HealthReading]) -> tuple[Point, ...]:
    return tuple(
        Point(
            course_number=reading.generation.course.number,
            number=reading.generation.number,
            generation_id=reading.generation_id,
            level=reading.level,
            prompt_tokens=reading.prompt_tokens,
            context_window=reading.context_window,
            optimal_max_tokens=reading.optimal_max_tokens,
            critical_max_tokens=reading.critical_max_tokens,
            read_at=reading.read_at,
            reason=reading.reason,
            percent_text="" if reading.hard_util is None else percent_text(reading.hard_util),
            llm_name=reading.generation.llm_name,
        )
        for reading in reversed(list(newest))
    )


def readings_in(generation_ids: Collection[int]) -> dict[int, HealthReading]:
    """The readings of these generations, in one query, with all columns that a meter needs."""
    return {reading.pk: reading for reading in _readings_of(generation_ids)}


@prepared(Many(BigIntegerField()))
def _readings_of(ids: Any) -> QuerySet[HealthReading]:
    found = HealthReading.objects.filter(pk__in=ids).select_related("generation__course")
    return found.defer(*LARGE).order_by()


def latest_levels(dialog_ids: Collection[UUID]) -> dict[UUID, str]:
    """The level of each dialog's newest reading, in one query; a dialog without one is left out."""
    readings = HealthReading.objects.filter(generation__dialog_id__in=dialog_ids)
    newest = readings.values("generation__dialog_id").annotate(newest=Max("pk")).values("newest")
    return dict(HealthReading.objects.filter(pk__in=newest).values_list("generation__dialog_id", "level"))
