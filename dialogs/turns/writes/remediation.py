"""Remediation's writes: the course's counters, the inserted prompts, and whether the agent complied.

All functions take the dialog's locked row and run in the caller's transaction.
"""

from __future__ import annotations

from typing import Any

from django.db.models import BigIntegerField, QuerySet

from dialogs.llms.reads import configured
from dialogs.models import Course, Dialog, Message, RemediationPrompt, Reminder
from dialogs.models.message import MessageOrigin, Role
from dialogs.transcript.writes.dialog_row import add_message, current_course, want_answer
from dialogs.turns.prompts import prompt
from dominds.prepared import prepared, prepared_update
from dominds.rows import update
from health.monitor.levels import Level, caution_cadence
from health.monitor.remediation import Due, Remediation, given, overflowed, step


def state_of(course: Course) -> Remediation:
    return Remediation(
        level=Level(course.level),
        caution_generations=course.caution_generations,
        countdown_turns=course.countdown_turns,
        due=Due(course.due),
    )


COUNTERS = ("level", "due", "caution_generations", "countdown_turns")


def keep(course: Course, state: Remediation) -> None:
    course.level, course.due = state.level, state.due
    course.caution_generations, course.countdown_turns = state.caution_generations, state.countdown_turns
    update(course, *COUNTERS)


def _count_anew(course: Course) -> None:
    """Read the stored counters again: the course may have been read before an answer that took minutes."""
    course.level, course.due, course.caution_generations, course.countdown_turns = _counted(course.pk)[0]


@prepared(BigIntegerField())
def _counted(course_id: Any) -> QuerySet[Course, Any]:
    return Course.objects.filter(pk=course_id).order_by().values_list(*COUNTERS)


def record_level(row: Dialog, course: Course, level: str) -> None:
    """Update the course's counters by a new reading."""
    _count_anew(course)
    keep(course, step(state_of(course), Level(level), cadence=caution_cadence(configured(row.llm))))


def record_overflow(course: Course) -> None:
    _count_anew(course)
    keep(course, overflowed(state_of(course)))


def forget(course: Course) -> None:
    """Reset the counters: they belong to a branch that is no longer shown."""
    keep(course, Remediation())


def lift(row: Dialog, course: Course) -> None:
    """The context has changed since the reading: drop what the reading made due, and the notice on a typed message that
    is not answered yet. Prompts that are messages stay."""
    forget(course)
    if row.answer_due and row.current_leaf_id:
        RemediationPrompt.objects.filter(message=row.current_leaf_id).exclude(notice="").delete()


def insert_prompt(row: Dialog) -> None:
    """Add the due prompt as a user message of its own; its answer is due."""
    course = current_course(row)
    text, fields = _prompt(row, course)
    message = add_message(row, role=Role.USER, origin=MessageOrigin.REMEDIATION, content=text, parent=row.current_leaf)
    _give(row, course, message, **fields)
    want_answer(row)


def carry_notice(row: Dialog) -> None:
    """Attach the notice to the typed message at the leaf, whose own text stays."""
    course = current_course(row)
    remaining = given(state_of(course)).countdown_turns
    notice = prompt("notice", language=row.work_language, remaining=remaining)
    if row.current_leaf is not None:
        _give(row, course, row.current_leaf, level=course.due, remaining=remaining, notice=notice)


def _prompt(row: Dialog, course: Course) -> tuple[str, dict[str, object]]:
    reminders = ", ".join(str(number) for number in _numbers(row))
    if course.due == Due.CAUTION:
        return prompt("caution", language=row.work_language, reminders=reminders), {"level": Due.CAUTION}
    remaining = given(state_of(course)).countdown_turns
    text = prompt("critical", language=row.work_language, reminders=reminders, remaining=remaining)
    return text, {"level": Due.CRITICAL, "remaining": remaining}


def _numbers(row: Dialog) -> list[int]:
    return list(Reminder.objects.filter(dialog=row, removed_at=None).values_list("number", flat=True))


def _give(row: Dialog, course: Course, message: Message, **fields: object) -> None:
    close_prompts(course)
    RemediationPrompt.objects.update_or_create(
        message=message, defaults={"dialog": row, "course": course, "curated": None, **fields}
    )
    keep(course, given(state_of(course)))


def mark_curated(course: Course) -> None:
    """The agent wrote a reminder, so it complied with the newest prompt of this course, if its turn is not over."""
    newest = RemediationPrompt.objects.filter(course=course).last()
    if newest is not None and newest.curated is None:
        newest.curated = True
        newest.save(update_fields=["curated"])


def close_prompts(course: Course) -> None:
    """The turn of the newest prompt is over: without a reminder by now, the agent did not comply."""
    _close(course.pk)


@prepared_update(BigIntegerField())
def _close(course_id: Any) -> tuple[QuerySet[RemediationPrompt], dict[str, Any]]:
    return RemediationPrompt.objects.filter(course=course_id, curated=None), {"curated": False}
