"""Which messages of the branch the model no longer sees as they are (shortened ones too), and what removed each of
them.

Only the messages' ids are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from uuid import UUID

from dialogs.models import Course, Dialog, Message
from dialogs.transcript.model_view import is_in_force, kept_since, left_out
from dialogs.transcript.reads.courses import earlier_ids
from health.models import CompactionRun

# Messages of one course, oldest first: the number of each in its dialog, by id.
Branch = dict[int, int]


@dataclass(frozen=True, kw_only=True)
class Removal:
    """Ids of messages that were removed together, in order. `run_id` None: by the beginning of the next course; in the
    present course, by the client."""

    course_id: int
    run_id: int | None
    ids: tuple[int, ...]


def archived_ids(dialog_id: UUID) -> frozenset[int]:
    dialog = Dialog.objects.select_related("current_leaf").get(pk=dialog_id)
    return frozenset(pk for removal in removals(dialog) for pk in removal.ids)


def removals(dialog: Dialog) -> tuple[Removal, ...]:
    """All removals of the branch, the newest first. A hundred courses take as many queries as one."""
    leaf = dialog.current_leaf
    if leaf is None:
        return ()
    branches = _branches(dialog, [(leaf.course_id, leaf.pk), *reversed(earlier_ids(dialog))])
    runs = _runs(branches)
    newest = next(iter(runs[leaf.course_id]), None)
    kept = kept_since(newest, list(branches[leaf.course_id])) if newest else ()
    shown = frozenset(chain.from_iterable(kept))
    by_client = Removal(course_id=leaf.course_id, run_id=None, ids=_left_out(dialog, branches[leaf.course_id], newest))
    found = (
        removal
        for course_id, branch in branches.items()
        for removal in _of_course(course_id, branch, runs[course_id], shown, is_over=course_id != leaf.course_id)
    )
    return tuple(removal for removal in (by_client, *found) if removal.ids)


def _left_out(dialog: Dialog, branch: Branch, run: CompactionRun | None) -> tuple[int, ...]:
    """Ids of messages that a client no longer sends, while no view is in force."""
    return tuple(left_out(dialog.client, branch)) if dialog.is_client_driven and run is None else ()


def _branches(dialog: Dialog, ways: Iterable[tuple[int, int]]) -> dict[int, Branch]:
    """For each course the messages on the way to its last one."""
    rows = Message.objects.filter(dialog=dialog).values_list("pk", "course_id", "parent_id", "seq")
    found = {pk: (of_course, parent_id, seq) for pk, of_course, parent_id, seq in rows}
    branches: dict[int, Branch] = {}
    for course_id, last_id in ways:
        way: list[tuple[int, int]] = []
        at: int | None = last_id
        while at in found and found[at][0] == course_id:
            way.append((at, found[at][2]))
            at = found[at][1]
        branches[course_id] = dict(reversed(way))
    return branches


def _runs(branches: Mapping[int, Branch]) -> dict[int, list[CompactionRun]]:
    """By course, the runs whose views led to the one in force on this branch, that one first."""
    facts = CompactionRun.objects.filter(course__in=branches)
    by_id = facts.only("view", "through_seq", "leaf_id", "parent_run_id", "status", "course_id", "queued_at").in_bulk()
    found: dict[int, list[CompactionRun]] = {}
    for course_id, head_id in Course.objects.filter(pk__in=branches).values_list("pk", "head_run_id"):
        found[course_id] = []
        at: int | None = head_id
        while at in by_id:
            found[course_id] += [by_id[at]] if is_in_force(by_id[at], branches[course_id]) else []
            at = by_id[at].parent_run_id
    return found


def _of_course(
    course_id: int, branch: Branch, runs: Sequence[CompactionRun], shown: frozenset[int], *, is_over: bool
) -> Iterator[Removal]:
    """`shown` were marked to stay since the newest of the runs."""
    whole = [_whole(run, branch) for run in runs]
    by_runs = branch.keys() - whole[0] - shown if whole else frozenset[int]()
    if is_over:
        yield Removal(course_id=course_id, run_id=None, ids=_ordered(branch, branch.keys() - by_runs))
    for at, run in enumerate(runs):
        # Gone since this run: it is missing here, and was still there, or not yet said, before.
        earlier = whole[at + 1] if at + 1 < len(runs) else frozenset(branch)
        yield Removal(course_id=course_id, run_id=run.pk, ids=_ordered(branch, by_runs & earlier))
        by_runs -= earlier


def _ordered(branch: Branch, chosen: Set[int]) -> tuple[int, ...]:
    return tuple(pk for pk in branch if pk in chosen)


def _whole(run: CompactionRun, branch: Branch) -> frozenset[int]:
    """The messages that a view has as they are, with all later ones."""
    standing = {row["message"] for row in run.view if "message" in row and "content" not in row}
    return frozenset(pk for pk, seq in branch.items() if pk in standing or seq > run.through_seq)
