"""What remediation asks of the driver now, as it stands in the rows."""

from __future__ import annotations

from dialogs.models import Course, Dialog, Generation, Message, Reminder
from dialogs.models.message import Role
from dialogs.models.reminder import Author
from dialogs.selectors.tool_calls import CLEAR_MIND

# So many courses in a row that came to nothing: opening another one does not help.
FUTILE_COURSES = 6
UNASKED = (Course.OpenedBy.AUTO, Course.OpenedBy.RECOVERY)


def clearing_is_futile(dialog: Dialog) -> bool:
    """True when the newest courses were all opened without the agent's doing and all critical from the start."""
    newest = _newest(dialog)
    return len(newest) == FUTILE_COURSES and all(_was_full_at_once(course) for course in newest)


def only_clears(dialog: Dialog) -> bool:
    """True when the agent's every answer of the newest courses called `clear_mind`."""
    newest = _newest(dialog)
    answers = Message.objects.filter(course__in=newest, role=Role.ASSISTANT)
    return len(newest) == FUTILE_COURSES and not answers.exclude(calls__name=CLEAR_MIND).exists()


def has_curated(course_id: int) -> bool:
    """Whether the agent wrote a reminder in this course that still stands."""
    return Reminder.objects.filter(course_id=course_id, author=Author.AGENT, removed_at=None).exists()


def _newest(dialog: Dialog) -> list[Course]:
    return list(dialog.courses.order_by("-number")[:FUTILE_COURSES])


def _was_full_at_once(course: Course) -> bool:
    if course.opened_by not in UNASKED:
        return False
    first = Generation.objects.filter(course=course, reading__isnull=False).order_by("number").first()
    return first is not None and first.reading.level == "critical"
