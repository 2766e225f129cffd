"""What people have marked of what was said: pins, and how important it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import BigIntegerField, QuerySet

from dialogs.models import Message, MessageMark
from dominds.prepared import prepared


def marks_of(messages: Sequence[Message]) -> dict[int, MessageMark]:
    """The marks of a course by their message. Few messages are marked, so all marks are read at once."""
    ids = {message.id for message in messages}
    found = (mark for course in {message.course_id for message in messages} for mark in _of_course(course))
    return {mark.message_id: mark for mark in found if mark.message_id in ids}


@prepared(BigIntegerField())
def _of_course(course_id: Any) -> QuerySet[MessageMark]:
    return MessageMark.objects.filter(message__course=course_id)
