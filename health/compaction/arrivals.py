"""What was said while a run was at work: the result takes the place of the prefix it was made from, the tail stays."""

from __future__ import annotations

from health.compaction.outcome import CompactionOutcome
from health.compaction.units import ContextState


def with_arrivals(outcome: CompactionOutcome, *, before: ContextState, now: ContextState) -> ContextState | None:
    """`now` with the outcome in place of `before`; None where that is no longer its beginning: then compact again.

    A version check by value (DC39): an edited, removed or recounted message makes the outcome stale.
    """
    read = len(before.units)
    if now.units[:read] != before.units:
        return None
    return now.having((*outcome.state.units, *now.units[read:]))
