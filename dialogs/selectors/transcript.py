"""The transcript as rows: the current course's messages, tries that failed, the live answer, the queue.

Earlier courses stand above it, folded; `course_page` reads one of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import Q

from dialogs.models import Course, Dialog, Generation, Message, Question, QueuedMessage
from dialogs.models.message import MessageOrigin, Role
from dialogs.selectors.call_rows import call_rows
from dialogs.selectors.courses import (
    SHOWN_COURSES,
    EarlierCourse,
    Stretch,
    current_course,
    earlier_courses,
    earlier_ids,
    stretch,
)
from dialogs.selectors.rows import AttemptRow, LiveRow, MessageRow, QueuedRow, Row

Status = Generation.Status
SHOWN_ROWS = 100
COURSE_PAGE_ROWS = 50


@dataclass(frozen=True, kw_only=True)
class Transcript:
    """`hidden` counts the current course's earlier messages that were left out, `hidden_courses` the first courses.

    `version` is the dialog's when it was read.
    """

    rows: tuple[Row, ...]
    hidden: int
    version: int
    course: Course | None
    earlier: tuple[EarlierCourse, ...]
    hidden_courses: int

    @property
    def question(self) -> Question | None:
        """The first that waits for the person."""
        calls = (call for row in self.rows if isinstance(row, MessageRow) for call in row.calls)
        asked = (call.question for call in calls if call.question)
        return next((question for question in asked if question.status == Question.Status.PENDING), None)


@dataclass(frozen=True, kw_only=True)
class Ends:
    """What may be done at the end of a branch, and to which message. Nothing may where a course is only read."""

    edit: int | None = None
    repeat: int | None = None
    retry: frozenset[int | None] = frozenset()
    # An answer to this message is wanted: another try may come.
    due_after: int | None = None


def transcript(dialog: Dialog, *, limit: int | None = SHOWN_ROWS) -> Transcript:
    leaf = dialog.current_leaf
    path = stretch(course_id=leaf.course_id, last_id=leaf.pk) if leaf else Stretch()
    shown = path.last(limit)
    queued = [QueuedRow(queued=queued) for queued in QueuedMessage.objects.filter(dialog=dialog)]
    before = earlier_ids(dialog)
    listed = before[-SHOWN_COURSES:] if limit else before
    return Transcript(
        rows=(*_rows(dialog, shown, is_current=True), *queued),
        hidden=len(path.said) - len(shown.said),
        version=dialog.version,
        course=current_course(dialog),
        earlier=earlier_courses(listed) if listed else (),
        hidden_courses=len(before) - len(listed),
    )


def course_page(dialog: Dialog, *, course_id: int, last_id: int, page: int) -> tuple[tuple[Row, ...], bool]:
    """One page of an earlier course, to be read only; and whether another one follows."""
    path = stretch(course_id=course_id, last_id=last_id)
    rows = _rows(dialog, path.page(page, COURSE_PAGE_ROWS), is_current=False)
    return tuple(row for row in rows if not isinstance(row, LiveRow)), len(path.said) > page * COURSE_PAGE_ROWS


def _rows(dialog: Dialog, shown: Stretch, *, is_current: bool) -> Iterator[Row]:
    messages = Message.objects.select_related("remediation_prompt").in_bulk(shown.said)
    answers = Generation.objects.filter(message_id__in=shown.said).select_related("reading")
    made_by = {generation.message_id: generation for generation in answers}
    calls = call_rows(shown.said)
    versions = _versions(dialog, messages) if is_current else {}
    ends = _ends(dialog, [messages[pk] for pk in shown.said], made_by) if is_current else Ends()
    between = _rows_between(shown.ids, ends)
    for pk in shown.ids:
        if pk in messages:
            yield MessageRow(
                message=messages[pk],
                generation=made_by.get(pk),
                calls=calls.get(pk, ()),
                versions=versions.get(messages[pk].parent_id, (pk,)),
                is_last_user=pk == ends.edit,
                is_last_answer=pk == ends.repeat,
            )
        yield from between[pk]


def _ends(dialog: Dialog, messages: list[Message], made_by: dict[int | None, Generation]) -> Ends:
    typed = [message.pk for message in messages if message.origin == MessageOrigin.TYPED]
    asked = [message.pk for message in messages if message.role == Role.USER]
    last = messages[-1].pk if messages else None
    return Ends(
        edit=typed[-1] if typed else None,
        repeat=last if last in made_by else None,
        retry=frozenset() if dialog.is_busy else frozenset({dialog.current_leaf_id, *asked[-1:]}),
        due_after=dialog.current_leaf_id if dialog.answer_due else None,
    )


def _versions(dialog: Dialog, messages: dict[int, Message]) -> dict[int | None, tuple[int, ...]]:
    """All messages that follow the same one as each of these, by what they follow, oldest first."""
    parents = {message.parent_id for message in messages.values()}
    same = Q(parent_id__in=parents - {None}) | (Q(parent=None) if None in parents else Q())
    found: defaultdict[int | None, list[int]] = defaultdict(list)
    rows = Message.objects.filter(same, dialog=dialog).order_by("seq")
    for pk, parent_id in rows.values_list("pk", "parent_id") if parents else ():
        found[parent_id].append(pk)
    return {parent_id: tuple(ids) for parent_id, ids in found.items()}


def _rows_between(shown: tuple[int, ...], ends: Ends) -> defaultdict[int, list[Row]]:
    """The tries that follow each message and became none, and the answer that is being made.

    A try without text is shown only while it is the newest: later ones, and one to come, explain it away.
    """
    rows: defaultdict[int, list[Row]] = defaultdict(list)
    newest: set[int] = set()
    tries = Generation.objects.filter(prompt_leaf_id__in=shown, prompt_leaf_id__isnull=False).order_by("-id")
    for generation in tries.select_related("reading"):
        leaf = generation.prompt_leaf_id
        is_newest = leaf not in newest
        another_comes = generation.retry_at is not None and leaf == ends.due_after
        newest.add(leaf)
        if generation.status == Status.RUNNING:
            rows[leaf].append(LiveRow(generation=generation))
        elif generation.message_id is None and (generation.partial_text or (is_newest and not another_comes)):
            rows[leaf].append(AttemptRow(generation=generation, can_retry=is_newest and leaf in ends.retry))
    for found in rows.values():
        found.reverse()
    return rows
