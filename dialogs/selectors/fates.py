"""What became of a course's messages for the model: left out of its view, or shortened in it. Estimates nothing."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from dialogs.model_view import load
from dialogs.models import Course
from health.models import CompactionRun


class Fate(StrEnum):
    """Of a message that the model does not see as it was said. It is in the archive all the same."""

    REMOVED = "removed"
    SHORTENED = "shortened"


def fates(course: Course | None, branch: Sequence[int]) -> dict[int, Fate]:
    """By message id, of a branch of this course given by its ids, oldest first. Tools' results are messages too."""
    run = _holding(course, frozenset(branch))
    if run is None:
        return {}
    shortened = {entry.message_id: entry.content is not None for entry in load(run.view)}
    covered = branch[: branch.index(run.leaf_id) + 1]
    found = {pk: Fate.SHORTENED if shortened.get(pk) else Fate.REMOVED for pk in covered}
    return {pk: fate for pk, fate in found.items() if shortened.get(pk, True)}


def _holding(course: Course | None, branch: frozenset[int]) -> CompactionRun | None:
    """The run whose view holds on this branch, as `dialogs.model_view.holding` finds it."""
    runs = CompactionRun.objects.only("leaf_id", "parent_run_id", "view")
    run_id = course.head_run_id if course else None
    while run_id is not None:
        run = runs.get(pk=run_id)
        if run.leaf_id in branch:
            return run
        run_id = run.parent_run_id
    return None
