"""A new course: the earlier one stays readable, the model sees only what is carried over.

Carried are reminders and Taskdoc (always), the goal of a run, and the person's message that has had no answer.
"""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import gettext as _

from dialogs.errors import DialogBusy, DialogError
from dialogs.models import Course, Dialog, Message, Question, Reminder
from dialogs.models.message import MessageOrigin, Role
from dialogs.prompts import prompt
from dialogs.selectors.autonomous import active_run
from dialogs.selectors.path import course_branch
from dialogs.selectors.tool_calls import offers_tools
from dialogs.services import task_snapshot
from dialogs.services.remediation import close_prompts
from dialogs.services.rows import (
    add_message,
    close_answer,
    current_course,
    lock,
    newest_course,
    want_answer,
    written_here,
)
from dialogs.services.tool_calls import OVERTAKEN, withdraw_open_calls

OpenedBy = Course.OpenedBy


@transaction.atomic
def start_course(*, dialog: Dialog) -> Course:
    """Begin a new course at a person's word. The agent says nothing before it is asked."""
    row = written_here(lock(dialog))
    if row.trashed_at:
        raise DialogError(_("This dialog is in the trash. Restore it to go on."))
    if row.is_busy:
        raise DialogBusy(_("The agent is still answering. Stop it or wait, then try again."))
    if row.current_leaf is None or row.current_leaf.origin == MessageOrigin.HANDOVER:
        raise DialogError(_("This course has just begun: there is nothing to leave behind."))
    course = open_course(row, opened_by=OpenedBy.USER)
    task_snapshot.reset(row)
    close_answer(row)
    return course


def clear_mind(row: Dialog, *, opened_by: OpenedBy) -> Course:
    """Begin a new course in mid-work and want its first answer."""
    course = open_course(row, opened_by=opened_by)
    want_answer(row)
    return course


def open_course(row: Dialog, *, opened_by: OpenedBy) -> Course:
    """Close the current course and open the next with its first message. Changes `row`, which the caller saves."""
    earlier = current_course(row)
    withdrawn = list(Question.objects.filter(dialog=row, status=Question.Status.PENDING))
    request = unanswered_request(row) if opened_by != OpenedBy.USER else None
    withdraw_open_calls(row, words=OVERTAKEN)
    close_prompts(earlier)
    course = Course.objects.create(
        dialog=row,
        number=newest_course(row).number + 1,
        opened_by=opened_by,
        carried=_carried(row, request, withdrawn),
    )
    text = _opening(row, course, earlier=earlier, request=request, withdrawn=withdrawn)
    add_message(
        row, role=Role.USER, origin=MessageOrigin.HANDOVER, content=text, parent=row.current_leaf, course=course
    )
    return course


def _carried(row: Dialog, request: Message | None, withdrawn: list[Question]) -> dict[str, object]:
    reminders = Reminder.objects.filter(dialog=row, removed_at=None).values_list("number", flat=True)
    return {
        "reminders": list(reminders),
        "taskdoc": bool(row.taskdoc.strip()),
        "request": request.pk if request else None,
        "questions": [question.pk for question in withdrawn],
    }


def _opening(
    row: Dialog, course: Course, *, earlier: Course, request: Message | None, withdrawn: list[Question]
) -> str:
    run = active_run(row)
    return prompt(
        "opening",
        language=row.work_language,
        number=course.number,
        earlier=earlier.number,
        opened_by=course.opened_by,
        tools=offers_tools(row.llm),
        reminders=course.carried["reminders"],
        taskdoc=course.carried["taskdoc"],
        goal=run.goal if run else "",
        questions=[question.text for question in withdrawn],
        request=request.content if request else "",
    )


def unanswered_request(row: Dialog) -> Message | None:
    """The newest message that a person typed, if no answer in words has followed it yet, in this course or before."""
    branch = course_branch(row.current_leaf)
    calling = set(
        Message.objects.filter(pk__in=[m.pk for m in branch], calls__isnull=False).values_list("pk", flat=True)
    )
    for message in reversed(branch):
        if message.origin == MessageOrigin.TYPED:
            return message
        if message.role == Role.ASSISTANT and message.content.strip() and message.pk not in calling:
            return None
    carried = branch[0].course.carried.get("request") if branch else None
    return Message.objects.filter(dialog=row, pk=carried).first() if carried else None
