"""The handover: what a fresh start tells of everything it left behind, in seed 4's frame, counted as it really is.

It has priority 1, so that strategies leave it alone, and the user's role, so that it gives no orders.
"""

from __future__ import annotations

from collections.abc import Sequence

from health.compaction import summaries
from health.compaction.ports import Asking, Attempt, Kit
from health.compaction.units import ContextState, Kind, Priority, Role, Unit, synthetic_id, total

OPENING = "Resuming from overflow: "
FRAME = OPENING + "{summary}. Continue {task}."
ARCHIVED = "{count:,} earlier messages ({tokens:,} tokens) are left out; all of them are in the archive"
TASK_CHARS = 100


def is_handover(unit: Unit) -> bool:
    return unit.kind is Kind.SUMMARY and unit.content.startswith(OPENING)


def handover(gone: Sequence[Unit], state: ContextState, kit: Kit, *, budget_tokens: int) -> Asking:
    """The handover for these, counted, as the only unit of a state. Raises nothing where the summary is empty."""
    archived = ARCHIVED.format(count=len(gone), tokens=total(gone))
    frame = kit.tokens(_framed(f"\n{archived}", state.task)) + kit.counter.per_message
    summary = yield from summaries.summary(gone, max_tokens=budget_tokens - frame, kit=kit, focus=state.task)
    sources = tuple(dict.fromkeys(source for unit in gone for source in unit.sources))
    unit = Unit(
        id=synthetic_id("handover", sources),
        role=Role.USER,
        kind=Kind.SUMMARY,
        content=_framed(f"{summary.text}\n{archived}", state.task),
        timestamp=gone[-1].timestamp,
        priority=Priority.P1,
        source_ids=sources,
    )
    return Attempt(state=state.having(kit.counted([unit])), changed=True, why=summary.why, reads=summary.reads)


def _framed(summary: str, task: str) -> str:
    named = " ".join(task.split())
    if len(named) > TASK_CHARS:
        named = f"{named[:TASK_CHARS].rstrip()}…"
    return FRAME.format(summary=summary.strip(" .\n"), task=f"task {named.rstrip('.')}" if named else "the task")
