"""Numbers of a dialog file that name another of its entries: their types say in which list that stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_type_hints

from dialogs.common.file_fields import Counted, Record, Whole


@dataclass(frozen=True)
class Reference:
    """Of a number in a file: it names an entry in this list of the file's."""

    entries: str


MessageSeq = Annotated[Counted, Reference("messages")]
CourseNumber = Annotated[Counted, Reference("courses")]
RunNumber = Annotated[Counted, Reference("compactions")]
ReminderNumber = Annotated[Counted, Reference("reminders")]
TextIndex = Annotated[Whole, Reference("texts")]

# By kind of record: they are asked for with each one.
REFERENCES: dict[type[Record], dict[str, str]] = {}


def references_in(kind: type[Record]) -> dict[str, str]:
    """The fields that name other entries, each with the list that these stand in."""
    if kind not in REFERENCES:
        found = {name: _reference(hint) for name, hint in get_type_hints(kind, include_extras=True).items()}
        REFERENCES[kind] = {name: reference.entries for name, reference in found.items() if reference}
    return REFERENCES[kind]


def _reference(hint: Any) -> Reference | None:
    if isinstance(hint, Reference):
        return hint
    return next(filter(None, map(_reference, get_args(hint))), None)
