"""What every field of a dialog file's task and events must be: readers for `shape_events.py`."""

from __future__ import annotations

from dialogs.transfer.place import list_of, maybe, moment, one_of, text, whole
from dialogs.transfer.shape_events import FACT_CHARS, TRAVELS
from dialogs.transfer.tables import Table, counted, short_text
from health.compaction.snapshot import GOAL_CHARS, MOST_ACTIONS, MOST_OBSERVATIONS, OBSERVATION_CHARS, PHASES
from health.models import CompactionRun

TASK: Table = {
    "goal": text(GOAL_CHARS),
    "current_phase": one_of(PHASES),
    "completed_actions": list_of(text(200), most=MOST_ACTIONS),
    "key_observations": list_of(text(OBSERVATION_CHARS), most=MOST_OBSERVATIONS),
    "earlier_actions": whole(),
}
EVENT: Table = {
    "code": one_of(TRAVELS),
    "run": maybe(counted),
    "llm": short_text,
    "estimated": maybe(whole()),
    "limit": maybe(whole()),
    "course": maybe(counted),
    "message": maybe(counted),
    "turn": maybe(whole()),
    "trigger": one_of(["", *CompactionRun.Trigger.values]),
    "cause": text(FACT_CHARS),
    "reason": text(FACT_CHARS),
    "compactions": maybe(whole()),
    "happened_at": moment,
}
