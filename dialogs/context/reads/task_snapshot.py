"""The progress of a dialog's task, for people and programs; and statistics of the context.

The statistics count a token for four characters, for programs and a debug line. Decisions use `ports.Counter` instead.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dialogs.context.border import read_context
from dialogs.context.estimate import present_context
from dialogs.context.material import SYSTEM, units_of, units_with_flat_images
from dialogs.llms.counter import counter_of
from dialogs.models import Dialog, Message
from dialogs.models.message import MessageOrigin, Role
from dialogs.transcript.reads.path import course_branch
from health.compaction.reading.importance import importances, mentions_error
from health.compaction.snapshot import TaskSnapshot, begun, from_json
from health.compaction.terms.ports import Kit
from health.compaction.terms.units import WRITTEN, Unit, tools_by_result
from health.configured import context_config

# How many characters of a result are read to find out whether it is an error.
LOOKED_AT = 2_000


def task_snapshot(dialog: Dialog) -> TaskSnapshot | None:
    """The dialog's snapshot, with as many of its newest actions as the settings say. None if no task has begun."""
    snapshot = from_json(dialog.task_snapshot)
    return snapshot.shown(context_config().payloads.max_actions) if snapshot else None


def snapshot_for_programs(dialog: Dialog) -> TaskSnapshot | None:
    """The dialog's snapshot; of a client's dialog, whose task is not known, derived from the messages."""
    if not dialog.is_client_driven:
        return task_snapshot(dialog)
    leaf = dialog.current_leaf
    units = units_of(read_context(dialog, course_branch(leaf)).whole()) if leaf else ()
    found = _told_by(units)
    return found.shown(context_config().payloads.max_actions) if found else None


def _told_by(units: Sequence[Unit]) -> TaskSnapshot | None:
    goal = next((unit.content for unit in units if _asks(unit)), "")
    if not goal:
        return None
    now, tools = begun(goal), tools_by_result(units)
    for unit in units:
        if tool := tools.get(unit.id):
            failed = mentions_error(unit.content[:LOOKED_AT])
            now = now.observed(f"{tool} failed: {unit.content}") if failed else now.acted(tool)
    return now


def _asks(unit: Unit) -> bool:
    return unit.role == Role.USER and not (unit.framed or unit.inserted or unit.kind in WRITTEN)


@dataclass(frozen=True, kw_only=True)
class PresentMessage:
    """`importance` is 0 to 1 by the kind of message: trimming keeps the highest."""

    id: str
    role: str
    kind: str
    estimated_tokens: int
    importance: float
    priority: int | None
    pinned: bool


def present_messages(dialog: Dialog) -> list[PresentMessage]:
    counter = counter_of(dialog.llm)
    units = Kit(counter=counter).counted(units_of(present_context(dialog), counter))
    weights = importances(units)
    return [
        PresentMessage(
            id=unit.id,
            role=unit.role.value,
            kind=unit.kind.value,
            estimated_tokens=unit.estimated_tokens or 0,
            importance=weights[unit.id],
            priority=unit.priority,
            pinned=unit.pinned,
        )
        for unit in units
    ]


def context_stats(dialog: Dialog) -> ContextStats:
    """Statistics of the messages that would be sent now; tokens are characters / 4 and 100 for each image, for any
    model.

    The text by which Dominds opens a course is not counted as a message.
    """
    context = present_context(dialog)
    opening = {str(one.pk) for one in context.branch if _opens_course(one)}
    units = [unit for unit in units_with_flat_images(context) if unit.id != SYSTEM and unit.id not in opening]
    return stats(units, snapshot=snapshot_for_programs(dialog))


def _opens_course(message: Message) -> bool:
    return message.origin == MessageOrigin.HANDOVER


CHARS_PER_TOKEN = 4
EVERY_STEPS = 5


@dataclass(frozen=True, kw_only=True)
class ContextStats:
    """`str()` is the debug line."""

    message_count: int
    estimated_tokens: int
    has_snapshot: bool

    def __str__(self) -> str:
        return f"Context stats: {self.message_count} messages, ~{self.estimated_tokens} tokens"


def stats(units: Iterable[Unit], *, snapshot: TaskSnapshot | None = None) -> ContextStats:
    units = tuple(units)
    characters = sum(map(_characters, units))
    images = sum(unit.image_tokens for unit in units)  # tokens already: 100 for each image
    return ContextStats(
        message_count=len(units),
        estimated_tokens=-(-characters // CHARS_PER_TOKEN) + images,
        has_snapshot=snapshot is not None and snapshot != TaskSnapshot(),
    )


def is_due(step: int, *, debug: bool) -> bool:
    """Whether the line is written after this step, counted from 1."""
    return debug and step > 0 and step % EVERY_STEPS == 0


def _characters(unit: Unit) -> int:
    """Text as it is; calls and their results as JSON."""
    calls = sum(len(_json({"name": call.name, "arguments": _read(call.arguments)})) for call in unit.calls)
    said = len(unit.content) if unit.answers is None else len(_json(_read(unit.content)))
    return said + calls


def _read(text: str) -> Any:
    """The value where the text is JSON, else the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
