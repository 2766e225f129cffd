"""Which view of a course holds on a branch. Views are made one from another, undone, and left behind by an edit."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field

from django.utils.functional import cached_property

from dialogs.models import Course
from dialogs.transcript.model_view import holding, is_in_force
from health.models import CompactionRun

NEEDED = ("leaf_id", "parent_run_id", "status")
Runs = Mapping[int, CompactionRun]


@dataclass(frozen=True, kw_only=True)
class Lineage:
    """`said`: the ids of the branch that is looked at. `view_run`: the run whose view holds on it, with that view.

    The other runs are read, without their views, when one of them is asked for.
    """

    head: int | None
    said: Container[int]
    view_run: CompactionRun | None
    read: Callable[[], Runs] = field(repr=False)

    @cached_property
    def runs(self) -> Runs:
        return self.read()

    @property
    def holds(self) -> int | None:
        return self.view_run.pk if self.view_run else None

    def may_undo(self, run_id: int) -> bool:
        return run_id == self.holds

    def may_redo(self, run_id: int) -> bool:
        """Whether an undone run can be put into force again: the view that it was made from holds, and the head leads
        to it.
        """
        run = self.runs.get(run_id)
        if run is None or run.status != CompactionRun.Status.UNDONE or run.leaf_id not in self.said:
            return False
        is_linked = self.is_kept(run_id) or self.head == run.parent_run_id
        return is_linked and holding_id(run.parent_run_id, self.runs, self.said) == self.holds

    def is_kept(self, run_id: int) -> bool:
        """The head leads to it: it is the head, or a later view was made from it."""
        return run_id in _chain(self.head, self.runs)


def lineage_of(course: Course | None, said: Container[int]) -> Lineage:
    """`said`: the ids of a branch of this course."""
    if course is None:
        return Lineage(head=None, said=said, view_run=None, read=dict)
    runs = CompactionRun.objects.filter(course=course).only(*NEEDED)
    return Lineage(head=course.head_run_id, said=said, view_run=_holding(course, said), read=runs.in_bulk)


def holding_id(run_id: int | None, runs: Runs, said: Container[int]) -> int | None:
    """The run whose view holds: this one, or the newest before it that does
    (`dialogs.transcript.model_view.holding`)."""
    return next((pk for pk in _chain(run_id, runs) if is_in_force(runs[pk], said)), None)


def _holding(course: Course, said: Container[int]) -> CompactionRun | None:
    """Nearly always the head: it alone is read then."""
    if course.head_run_id is None:
        return None
    return holding(
        CompactionRun.objects.only(*NEEDED, "view", "course_id", "queued_at").get(pk=course.head_run_id), said
    )


def _chain(run_id: int | None, runs: Runs) -> Iterator[int]:
    while run_id is not None and run_id in runs:
        yield run_id
        run_id = runs[run_id].parent_run_id
