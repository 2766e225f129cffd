"""What people have marked of what was said: pins, and how important it is."""

from __future__ import annotations

from typing import Any

from django.db.models import BigIntegerField, QuerySet

from dialogs.models import MessageMark
from dominds.prepared import prepared


@prepared(BigIntegerField())
def marks_of_course(course_id: Any) -> QuerySet[MessageMark]:
    return MessageMark.objects.filter(message__course=course_id)
