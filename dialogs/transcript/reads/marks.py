"""What people have marked of what was said: pins, and how important it is. What is marked to stay is shown to the model
from then on, whatever the view was made of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import BigIntegerField, DateTimeField, Q, QuerySet

from dialogs.models import Message, MessageMark
from dialogs.models.message import Role
from dialogs.transcript.model_view import Ids, rounds_of
from dominds.prepared import prepared
from health.models import CompactionRun


def marks_of(messages: Sequence[Message]) -> dict[int, MessageMark]:
    """The marks of a course by their message. Few messages are marked, so all marks are read at once."""
    ids = {message.id for message in messages}
    found = (mark for course in {message.course_id for message in messages} for mark in _of_course(course))
    return {mark.message_id: mark for mark in found if mark.message_id in ids}


@prepared(BigIntegerField())
def _of_course(course_id: Any) -> QuerySet[MessageMark]:
    return MessageMark.objects.filter(message__course=course_id)


def kept_since(run: CompactionRun, branch: Sequence[int]) -> tuple[Ids, ...]:
    """What was marked to stay since this run began, of a branch given by its ids: each with its round of calls and
    results."""
    marked = marked_since(run)
    if not marked:
        return ()
    results = Message.objects.filter(course=run.course_id, role=Role.TOOL).values_list("pk", flat=True)
    return rounds_of(marked, branch, set(results))


def marked_since(run: CompactionRun) -> list[int]:
    """The messages of its course that were marked to stay since this run began: it may not have known of it. What was
    marked before it knew, and has decided upon."""
    return [pk for (pk,) in _marked_since(run.course_id, run.queued_at)]


@prepared(BigIntegerField(), DateTimeField())
def _marked_since(course_id: Any, moment: Any) -> QuerySet[MessageMark, Any]:
    kept = Q(pinned=True) | Q(priority=MessageMark.Priority.P1)
    marks = MessageMark.objects.filter(kept, message__course=course_id, marked_at__gt=moment)
    return marks.order_by().values_list("message_id")
