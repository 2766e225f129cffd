"""Laws of events in a dialog file: the compaction, course and message that they name are there."""

from __future__ import annotations

from dialogs.transfer.place import find
from dialogs.transfer.shape import DialogFile


def check_events(file: DialogFile) -> None:
    known = {
        "run": {entry.number for entry in file.compactions},
        "course": {entry.number for entry in file.courses},
        "message": {entry.seq for entry in file.messages},
    }
    for index, event in enumerate(file.events):
        for name, there in known.items():
            if getattr(event, name) is not None:
                find(getattr(event, name), there, f"events[{index}].{name}")
