"""Which messages of the branch the model no longer sees as they were said, and what took each of them away.

A message that stands shortened counts too. Nothing is read of the messages but their ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from dialogs.models import Course, Dialog, Message
from dialogs.selectors.courses import earlier_ids
from dialogs.selectors.path import course_branch_ids
from health.models import CompactionRun


@dataclass(frozen=True, kw_only=True)
class Removal:
    """Messages that left together, by id and in order. `run_id` None: the next course left them behind."""

    course_id: int
    run_id: int | None
    ids: tuple[int, ...]


def archived_ids(dialog_id: UUID) -> frozenset[int]:
    dialog = Dialog.objects.select_related("current_leaf").get(pk=dialog_id)
    return frozenset(pk for removal in removals(dialog) for pk in removal.ids)


def removals(dialog: Dialog) -> tuple[Removal, ...]:
    """All of them, the newest first."""
    leaf = dialog.current_leaf
    if leaf is None:
        return ()
    now = _of_course(leaf.course_id, leaf.pk, is_over=False)
    before = (_of_course(course_id, last_id, is_over=True) for course_id, last_id in reversed(earlier_ids(dialog)))
    return tuple(removal for course in (now, *before) for removal in course if removal.ids)


def _of_course(course_id: int, last_id: int, *, is_over: bool) -> Iterator[Removal]:
    course = Course.objects.get(pk=course_id)
    branch = course_branch_ids(course_id=course_id, last_id=last_id)
    ids = tuple(message.pk for message in branch)
    runs = _runs(course, frozenset(ids))
    whole = [_whole(run, branch) for run in runs]
    by_runs = frozenset(ids) - whole[0] if whole else frozenset()
    if is_over:
        left = tuple(pk for pk in ids if pk not in by_runs)
        yield Removal(course_id=course_id, run_id=None, ids=left)
    for at, run in enumerate(runs):
        # Gone since this run: it is missing here, and was still there, or not yet said, before.
        earlier = whole[at + 1] if at + 1 < len(runs) else frozenset(ids)
        yield Removal(course_id=course_id, run_id=run.pk, ids=tuple(pk for pk in ids if pk in by_runs & earlier))
        by_runs -= earlier


def _runs(course: Course, branch: frozenset[int]) -> list[CompactionRun]:
    """The views that led to the one that holds on this branch, that one first."""
    facts = CompactionRun.objects.filter(course=course).only("view", "through_seq", "leaf_id", "parent_run_id")
    by_id = {run.pk: run for run in facts} if course.head_run_id else {}
    found: list[CompactionRun] = []
    at = course.head_run_id
    while at in by_id:
        found += [by_id[at]] if by_id[at].leaf_id in branch else []
        at = by_id[at].parent_run_id
    return found


def _whole(run: CompactionRun, branch: Sequence[Message]) -> frozenset[int]:
    """What stands in a view as it was said, with all that came after it."""
    standing = {row["message"] for row in run.view if "message" in row and "content" not in row}
    return frozenset(message.pk for message in branch if message.pk in standing or message.seq > run.through_seq)
