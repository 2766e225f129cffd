"""Laws of marks, compaction runs and views in a dialog file: whatever they refer to is there and is of that kind.

Whether a view can be sent is another question, answered in `sound_views.py`: one that cannot is no reason to refuse.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext as _

from dialogs.transfer.place import Place, find, once
from dialogs.transfer.shape import DialogFile
from dialogs.transfer.shape_views import HOLDS, CompactionEntry, Status


def check_views(file: DialogFile) -> None:
    courses = {entry.seq: entry.course for entry in file.messages}
    once((entry.message for entry in file.marks), "marks", "message")
    for index, mark in enumerate(file.marks):
        find(mark.message, courses, f"marks[{index}].message")
    once((entry.number for entry in file.compactions), "compactions", "number")
    runs: dict[int, CompactionEntry] = {}
    for index, entry in enumerate(file.compactions):
        _check_compaction(entry, courses, runs, f"compactions[{index}]")
        runs[entry.number] = entry
    _check_heads(file, runs)
    _check_changes(file, runs)


def _check_compaction(
    entry: CompactionEntry, courses: dict[int, int], earlier: dict[int, CompactionEntry], path: str
) -> None:
    for field, seq in _messages(entry):
        find(seq, courses, f"{path}.{field}")
    if courses[entry.leaf] != entry.course:
        Place(None, f"{path}.leaf").refuse(_("must be a message of the run's course."))
    if any(seen.message is None and seen.content is None for seen in entry.view):
        Place(None, f"{path}.view").refuse(_("must have a text where there is no message."))
    if entry.parent is not None:
        find(entry.parent, earlier, f"{path}.parent")
        _check_holds(earlier[entry.parent], entry.course, HOLDS, f"{path}.parent")


def _messages(entry: CompactionEntry) -> Iterator[tuple[str, int]]:
    """The messages that it names, each with the field where."""
    yield "leaf", entry.leaf
    yield from (("removed", seq) for seq in entry.removed)
    for seen in entry.view:
        yield from (("view", seq) for seq in (seen.message, *seen.covers) if seq is not None)
    yield from (("coverage", receipt.message) for receipt in entry.coverage if receipt.message is not None)
    yield from (("losses", loss.message) for loss in entry.losses if loss.message is not None)


def _check_holds(run: CompactionEntry, course: int, states: tuple[str, ...], path: str) -> None:
    if run.course != course or run.status not in states:
        Place(None, path).refuse(_("must be a compaction of the same course whose view holds."))


def _check_heads(file: DialogFile, runs: dict[int, CompactionEntry]) -> None:
    for index, entry in enumerate(file.courses):
        if entry.head is not None:
            find(entry.head, runs, f"courses[{index}].head")
            _check_holds(runs[entry.head], entry.number, (Status.APPLIED,), f"courses[{index}].head")


def _check_changes(file: DialogFile, runs: dict[int, CompactionEntry]) -> None:
    courses = {entry.number for entry in file.courses}
    for index, entry in enumerate(file.view_changes):
        find(entry.course, courses, f"view_changes[{index}].course")
        for number in filter(None, (entry.before, entry.after)):
            find(number, runs, f"view_changes[{index}]")
    for index, generation in enumerate(file.generations):
        if generation.sent.view is not None:
            find(generation.sent.view, runs, f"generations[{index}].sent.view")
