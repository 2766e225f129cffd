"""A view: what the model sees of a course instead of all that was said. Values, and how they are stored as JSON.

An entry is a stored message, perhaps with a shorter text, or a message that compaction wrote and the ids it covers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dialogs.models import Course, Message
from health.compaction.handover import is_handover
from health.compaction.units import Unit

HANDOVER = "handover"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """`content` None: the message as it was said. `kind` says what compaction wrote: summary, placeholder, handover."""

    message_id: int | None = None
    content: str | None = None
    kind: str = ""
    covers: tuple[int, ...] = ()

    @property
    def ids(self) -> tuple[int, ...]:
        """The messages it stands for."""
        return self.covers if self.message_id is None else (self.message_id,)


def dump(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """Only what is not empty, as thousands of entries are plain message ids."""
    return [
        {
            name: value
            for name, value in (
                ("message", entry.message_id),
                ("content", entry.content),
                ("kind", entry.kind),
                ("covers", list(entry.covers)),
            )
            if value not in (None, "", []) or (name == "content" and value is not None)
        }
        for entry in entries
    ]


def load(rows: Iterable[dict[str, Any]]) -> tuple[Entry, ...]:
    return tuple(
        Entry(
            message_id=row.get("message"),
            content=row.get("content"),
            kind=row.get("kind", ""),
            covers=tuple(row.get("covers", ())),
        )
        for row in rows
    )


def as_said(messages: Iterable[Message]) -> tuple[Entry, ...]:
    return tuple(Entry(message_id=message.pk) for message in messages)


def current_view(course: Course | None, branch: Sequence[Message]) -> tuple[Entry, ...]:
    """What the model sees of a course whose branch this is: the head run's view and all that was said later.

    A run of another branch (the person edited an earlier message) does not hold here: then it is as it was said.
    """
    if course is None:
        return as_said(branch)
    said = {message.pk for message in branch}
    run = course.head_run
    while run is not None and run.leaf_id not in said:
        run = run.parent_run
    if run is None:
        return as_said(branch)
    later = (message for message in branch if message.seq > run.through_seq)
    return (*load(run.view), *as_said(later))


def entries_of(units: Iterable[Unit], said: dict[str, str]) -> tuple[Entry, ...]:
    """The view that these units are. `said` holds what each stored message sends by itself, by its id as text."""
    return tuple(_entry(unit, said) for unit in units)


def _entry(unit: Unit, said: dict[str, str]) -> Entry:
    if unit.id in said:
        return Entry(message_id=int(unit.id), content=None if unit.content == said[unit.id] else unit.content)
    covers = tuple(sorted({int(one) for one in unit.sources if one.isdigit()}))
    return Entry(content=unit.content, kind=HANDOVER if is_handover(unit) else unit.kind.value, covers=covers)

