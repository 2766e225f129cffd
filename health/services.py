"""Every write of the health app, and `compact_messages`, which writes nothing and needs no database.

Models are imported where they are written, so that compaction can be imported by any program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from health.compacting import compact_messages
from health.monitor.levels import Configured, Reading, Usage, UsageUnavailable, read

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from health.models import HealthReading

__all__ = ["compact_messages", "record_reading", "record_reward_export"]


def record_reading(
    *, generation_id: int, usage: Usage | UsageUnavailable, configured: Configured, window_source: str
) -> HealthReading:
    """Judge one generation by its reported usage and keep the verdict. Without usage, without numbers."""
    from dominds.rows import add, new
    from health.models import HealthReading

    reading = read(usage, configured)
    row = new(
        HealthReading,
        generation_id=generation_id,
        level=reading.level,
        reason=reading.reason,
        prompt_tokens=reading.prompt_tokens,
        context_window=reading.context_window,
        window_source=window_source if reading.context_window else "",
        hard_util=reading.hard_util,
        optimal_util=reading.optimal_util,
        **_ceilings(reading),
    )
    add(row)
    return row


def record_reward_export(*, lines: int, by: User | None) -> None:
    """Who took the log of rewards out stands where changed settings stand."""
    from health.models import SettingsChange

    SettingsChange.objects.create(changed_by=by, key="reward_log.export", after=str(lines))


def _ceilings(reading: Reading) -> dict[str, int | bool | None]:
    limits = reading.thresholds
    if limits is None:
        return {}
    return {
        "optimal_max_tokens": limits.optimal_max_tokens,
        "optimal_configured": limits.optimal_configured,
        "critical_max_tokens": limits.critical_max_tokens,
        "critical_configured": limits.critical_configured,
    }
