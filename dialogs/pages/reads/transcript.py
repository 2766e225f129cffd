"""The transcript: the current course's rows, and the earlier courses above it, folded.

`course_page` reads one of the earlier courses; the rows of either are made by `transcript_rows`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet, UUIDField

from dialogs.models import Course, Dialog, Question, QueuedMessage
from dialogs.pages.reads.rows import LiveRow, MessageRow, QueuedRow, Row
from dialogs.pages.reads.transcript_rows import rows_of
from dialogs.transcript.reads.courses import (
    SHOWN_COURSES,
    EarlierCourse,
    Stretch,
    current_course,
    earlier_courses,
    earlier_ids,
    stretch,
)
from dominds.prepared import prepared

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


def transcript(dialog: Dialog, *, limit: int | None = SHOWN_ROWS) -> Transcript:
    leaf = dialog.current_leaf
    course = current_course(dialog)
    path = stretch(course_id=leaf.course_id, last_id=leaf.pk) if leaf else Stretch()
    shown = path.last(limit)
    queued = [QueuedRow(queued=queued) for queued in _queued(dialog.pk)]
    before = earlier_ids(dialog)
    listed = before[-SHOWN_COURSES:] if limit else before
    return Transcript(
        rows=(*rows_of(dialog, course, path, shown, is_current=True), *queued),
        hidden=len(path.said) - len(shown.said),
        version=dialog.version,
        course=course,
        earlier=earlier_courses(listed) if listed else (),
        hidden_courses=len(before) - len(listed),
    )


@prepared(UUIDField())
def _queued(dialog_id: Any) -> QuerySet[QueuedMessage]:
    return QueuedMessage.objects.filter(dialog=dialog_id)


def course_page(dialog: Dialog, *, course_id: int, last_id: int, page: int) -> tuple[tuple[Row, ...], bool]:
    """One page of an earlier course, to be read only; and whether another one follows."""
    path = stretch(course_id=course_id, last_id=last_id)
    course = Course.objects.get(pk=course_id)
    rows = rows_of(dialog, course, path, path.page(page, COURSE_PAGE_ROWS), is_current=False)
    return tuple(row for row in rows if not isinstance(row, LiveRow)), len(path.said) > page * COURSE_PAGE_ROWS
