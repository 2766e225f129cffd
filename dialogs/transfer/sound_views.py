"""Views in a dialog file that no provider would take are dropped: a dialog that works beats a view. Pure.

A view is sound when its messages stand on the branch it was made from, in order, once, and each call with its results.
Where one is not, the view that it was made from holds again, and its run says why.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from dialogs.models import ViewChange
from dialogs.transfer.laws_of_calls import rounds
from dialogs.transfer.shape import DialogFile, GenerationEntry
from dialogs.transfer.shape_views import HOLDS, CompactionEntry, Status, ViewChangeEntry
from health.compaction.terms.reasons import Reason, Why

Rounds = dict[int, tuple[int, ...]]


def with_sound_views(file: DialogFile) -> DialogFile:
    """The file, whose calls all have results, with the views that can be sent."""
    unsound = _unsound(file)
    if not unsound:
        return file
    stood = _Stood(file.compactions, unsound)
    return replace(
        file,
        compactions=tuple(stood.run(entry) for entry in file.compactions),
        courses=tuple(replace(entry, head=stood.at(entry.head)) for entry in file.courses),
        view_changes=(*file.view_changes, *_fallen_back(file, stood)),
        generations=tuple(_without_view(entry, unsound) for entry in file.generations),
    )


class _Stood:
    """Which view holds where one was dropped."""

    def __init__(self, entries: Collection[CompactionEntry], unsound: Collection[int]) -> None:
        self.parents = {entry.number: entry.parent for entry in entries}
        self.unsound = unsound

    def at(self, number: int | None) -> int | None:
        while number is not None and number in self.unsound:
            number = self.parents[number]
        return number

    def run(self, entry: CompactionEntry) -> CompactionEntry:
        entry = replace(entry, parent=self.at(entry.parent))
        if entry.number not in self.unsound:
            return entry
        cancelled = Status.CANCELLED.value
        why = str(Reason(Why.UNSOUND_VIEW))
        return replace(entry, view=(), removed=(), status=cancelled, phase=cancelled, reason=why)


def _fallen_back(file: DialogFile, stood: _Stood) -> Iterator[ViewChangeEntry]:
    for entry in file.courses:
        after = stood.at(entry.head)
        if after != entry.head:
            undone = ViewChange.Why.UNDONE.value
            yield ViewChangeEntry(
                course=entry.number, before=entry.head, after=after, why=undone, changed_at=file.exported_at
            )


def _without_view(entry: GenerationEntry, unsound: Collection[int]) -> GenerationEntry:
    """A generation whose view cannot be sent: it is told by the messages alone what it was sent."""
    return replace(entry, sent=replace(entry.sent, view=None)) if entry.sent.view in unsound else entry


def _unsound(file: DialogFile) -> set[int]:
    """The numbers of the runs whose views cannot be sent."""
    parents = _parents(file)
    closed = {
        caller: (caller, *(call.result_message for call in calls if call.result_message is not None))
        for caller, calls in rounds(file).items()
    }
    views = [entry for entry in file.compactions if entry.status in HOLDS]
    return {entry.number for entry in views if not _is_sound(entry, parents, closed)}


def _parents(file: DialogFile) -> dict[int, int | None]:
    """The message before each one in its course."""
    courses: dict[int | None, int] = {entry.seq: entry.course for entry in file.messages}
    return {entry.seq: entry.parent if courses.get(entry.parent) == entry.course else None for entry in file.messages}


def _is_sound(entry: CompactionEntry, parents: dict[int, int | None], closed: Rounds) -> bool:
    branch = _branch(entry.leaf, parents)
    shown = [seen.message for seen in entry.view]
    said = [seq for seq in shown if seq is not None]
    if not shown or not branch.issuperset(said) or said != sorted(set(said)):
        return False
    here = [members for caller, members in closed.items() if caller in branch]
    # A round that was open when the run began: its results follow the view.
    later = [seq for members in here for seq in members if seq not in branch]
    place = {seq: at for at, seq in enumerate([*shown, *later]) if seq is not None}
    return all(_is_together([place.get(seq) for seq in members]) for members in here)


def _branch(leaf: int, parents: dict[int, int | None]) -> set[int]:
    found: set[int] = set()
    at: int | None = leaf
    while at is not None:
        found.add(at)
        at = parents[at]
    return found


def _is_together(places: list[int | None]) -> bool:
    """Whether these messages stand in one row of the branch, or none of them stands there."""
    first = places[0]
    return not any(at is not None for at in places) if first is None else places == [*range(first, first + len(places))]
