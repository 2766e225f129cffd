"""The task's snapshot and the events of a dialog's context, written from a checked dialog file.

Events belong to no agent here: they are told, and neither the critic, nor an over-hit's hour, nor what opens a cleanup
task counts them again.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from dialogs.models import Course, Dialog, Message
from dialogs.transfer.adding import add
from dialogs.transfer.importing_generations import llm_named
from dialogs.transfer.shape_events import EventEntry, TaskEntry
from health.compaction.snapshot import TaskSnapshot, as_json
from health.models import CompactionRun, ContextEvent

Messages = dict[int, Message]
Courses = dict[int, Course]
# By number.
Runs = dict[int, CompactionRun]
FACTS = ("turn", "trigger", "cause", "reason", "compactions")


def task_of(entry: TaskEntry | None) -> dict[str, Any]:
    return as_json(TaskSnapshot(**asdict(entry))) if entry else {}


def add_events(
    dialog: Dialog, entries: tuple[EventEntry, ...], courses: Courses, messages: Messages, runs: Runs
) -> None:
    llms = {slug: llm_named(slug) for slug in {entry.llm for entry in entries}}
    rows = [
        ContextEvent(
            code=entry.code,
            dialog=dialog,
            owner=dialog.owner,
            run=runs[entry.run] if entry.run is not None else None,
            llm=llms[entry.llm],
            estimated=entry.estimated,
            limit=entry.limit,
            facts=_facts(entry, courses, messages),
        )
        for entry in entries
    ]
    add(ContextEvent, rows, entries, "happened_at")


def _facts(entry: EventEntry, courses: Courses, messages: Messages) -> dict[str, Any]:
    """As `services.events` writes them: only what is known, messages and courses by id."""
    facts = {name: getattr(entry, name) for name in FACTS}
    facts["course"] = courses[entry.course].pk if entry.course is not None else None
    facts["message"] = messages[entry.message].pk if entry.message is not None else None
    return {name: value for name, value in facts.items() if value not in (None, "")}
