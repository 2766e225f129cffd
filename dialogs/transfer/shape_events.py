"""What a dialog file says of how its context fared: the task's snapshot, and events. Tokens are estimated.

Events are told as history. What steers the dialog that it happened in (a loop that was seen, a fresh start that is
offered) stays there. Whose agent it was is left out, as people are. A change here is a new FORMAT.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from dialogs.transfer.place import Counted, ShortText, Whole, list_of, one_of, text
from health.compaction.snapshot import GOAL_CHARS, MOST_ACTIONS, MOST_OBSERVATIONS, OBSERVATION_CHARS, PHASES
from health.models import CompactionRun, ContextEvent

Code = ContextEvent.Code
# Of a text beside the numbers.
FACT_CHARS = 2_000
TRAVELS = tuple(code for code in Code if code is not Code.LOOP_DETECTED)


@dataclass(frozen=True, kw_only=True)
class TaskEntry:
    """As `health.compaction.snapshot.TaskSnapshot`."""

    goal: Annotated[str, text(GOAL_CHARS)]
    current_phase: Annotated[str, one_of(PHASES)]
    completed_actions: Annotated[tuple[str, ...], list_of(text(200), most=MOST_ACTIONS)]
    key_observations: Annotated[tuple[str, ...], list_of(text(OBSERVATION_CHARS), most=MOST_OBSERVATIONS)]
    earlier_actions: Whole


@dataclass(frozen=True, kw_only=True)
class EventEntry:
    """`course`, `message` (by `seq`) and `turn` say where it happened, `run` in which compaction; null: not noted."""

    code: Annotated[str, one_of(TRAVELS)]
    run: Counted | None
    llm: ShortText
    estimated: Whole | None
    limit: Whole | None
    course: Counted | None
    message: Counted | None
    turn: Whole | None
    trigger: Annotated[str, one_of(["", *CompactionRun.Trigger.values])]
    cause: Annotated[str, text(FACT_CHARS)]
    reason: Annotated[str, text(FACT_CHARS)]
    compactions: Whole | None
    happened_at: datetime
