"""What a dialog file says of how its context fared: the task's snapshot, and events. Tokens are estimated.

Events are told as history. What steers the dialog that it happened in (a loop that was seen, a fresh start that is
offered) stays there. Whose agent it was is left out, as people are. A change here is a new FORMAT.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from health.models import ContextEvent

Code = ContextEvent.Code
# Of a text beside the numbers.
FACT_CHARS = 2_000
TRAVELS = tuple(code for code in Code if code is not Code.LOOP_DETECTED)


@dataclass(frozen=True, kw_only=True)
class TaskEntry:
    """As `health.compaction.snapshot.TaskSnapshot`."""

    goal: str
    current_phase: str
    completed_actions: tuple[str, ...]
    key_observations: tuple[str, ...]
    earlier_actions: int


@dataclass(frozen=True, kw_only=True)
class EventEntry:
    """`course`, `message` (by `seq`) and `turn` say where it happened, `run` in which compaction; null: not noted."""

    code: str
    run: int | None
    llm: str
    estimated: int | None
    limit: int | None
    course: int | None
    message: int | None
    turn: int | None
    trigger: str
    cause: str
    reason: str
    compactions: int | None
    happened_at: datetime
