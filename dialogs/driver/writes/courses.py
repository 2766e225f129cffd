"""Opens a new course: the earlier one stays readable, the model sees only what is carried over.

Carried over are reminders and Taskdoc (always), the goal of a run, the person's messages and answers that the agent has
not replied to in text, and a handover of the earlier course, which a person may omit or remove.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.utils.translation import gettext as _

from dialogs.common.errors import DialogError
from dialogs.compaction.writes.view_changes import resting
from dialogs.context.carry_over import Handover, handover_for, is_answered, since_answer, unanswered_in
from dialogs.context.estimate import present_tokens
from dialogs.llms.guard import active_guard
from dialogs.models import Course, Dialog, Message, Question, Reminder
from dialogs.models.message import MessageOrigin, Role
from dialogs.transcript.reads.autonomous import active_run
from dialogs.transcript.reads.courses import opening_of
from dialogs.transcript.reads.path import course_branch
from dialogs.transcript.reads.tool_calls import has_room_for_one, offers_own_tools
from dialogs.transcript.writes import task_snapshot
from dialogs.transcript.writes.dialog_row import (
    add_message,
    close_answer,
    current_course,
    idle,
    lock,
    newest_course,
    out_of_trash,
    save,
    want_answer,
    written_here,
)
from dialogs.turns.prompts import prompt
from dialogs.turns.reads.turns import dialog_to_drive
from dialogs.turns.writes.remediation import close_prompts, forget
from dialogs.turns.writes.tool_calls import OVERTAKEN, withdraw_open_calls

OpenedBy = Course.OpenedBy


def start_course(*, dialog: Dialog, empty: bool = False) -> Course:
    """Begin a new course for a person. The agent then waits for a message. `empty`: without a handover."""
    handover = None if empty else handover_for(dialog.pk)
    with transaction.atomic():
        row = idle(out_of_trash(written_here(lock(dialog))))
        if row.current_leaf is None or row.current_leaf.origin == MessageOrigin.HANDOVER:
            raise DialogError(_("This course has just begun: there is nothing to leave behind."))
        course = open_course(row, opened_by=OpenedBy.USER, handover=handover, empty=empty)
        task_snapshot.reset(row)
        close_answer(row)
        return course


def clear_mind(row: Dialog, *, opened_by: OpenedBy, handover: Handover | None = None) -> Course:
    """Begin a new course within a turn; its first answer is due at once."""
    course = open_course(row, opened_by=opened_by, handover=handover)
    want_answer(row)
    return course


def open_course(row: Dialog, *, opened_by: OpenedBy, handover: Handover | None = None, empty: bool = False) -> Course:
    """Close the current course and open the next with its first message. Changes `row`, which the caller saves.

    `empty`: by the person's choice, their unanswered messages are not carried over either.
    """
    earlier = current_course(row)
    questions = list(Question.objects.filter(dialog=row, status=Question.Status.PENDING))
    requests: tuple[Message, ...] = ()
    if not empty:
        questions, requests = [*questions, *_answered_by_person(row)], unanswered(row)
    withdraw_open_calls(row, words=OVERTAKEN)
    close_prompts(earlier)
    course = Course.objects.create(
        dialog=row,
        number=newest_course(row).number + 1,
        opened_by=opened_by,
        carried=_carried(row, requests, questions),
    )
    text = _opening(row, course, earlier=earlier, requests=requests, questions=questions)
    add_message(
        row,
        role=Role.USER,
        origin=MessageOrigin.HANDOVER,
        content=text,
        parent=row.current_leaf,
        parts={"handover": handover.as_parts()} if handover else None,
        course=course,
    )
    return course


@transaction.atomic
def set_handover_away(*, dialog: Dialog, number: int, away: bool) -> None:
    """Hide a course's handover from the model, or show it again. Raises DialogError if there is none."""
    row = written_here(resting(lock(dialog)))
    opening = opening_of(row, number)
    if opening is None or "handover" not in opening.parts:
        raise DialogError(_("This course has no handover."))
    opening.parts["handover"]["away"] = away
    opening.save(update_fields=["parts"])
    save(row)


@transaction.atomic
def return_to_earlier(*, dialog: Dialog, number: int) -> None:
    """Go on from the end of the previous course. The messages of this one stay, as another version."""
    row = written_here(resting(lock(dialog)))
    opening = opening_of(row, number)
    if opening is None or opening.parent is None or current_course(row).number != number:
        raise DialogError(_("There is no earlier course to go back to."))
    row.current_leaf = opening.parent
    forget(opening.parent.course)
    save(row, "current_leaf")


def size_of_earlier(dialog: Dialog, number: int) -> tuple[int, bool] | None:
    """The estimated tokens of the next request after going back from that course, and whether it would be compacted
    first. None if going back is impossible."""
    opening, there = opening_of(dialog, number), dialog_to_drive(dialog.pk)
    if opening is None or opening.parent is None:
        return None
    there.current_leaf = opening.parent
    tokens, guard = present_tokens(there), active_guard(there)
    return tokens, guard is not None and tokens > guard.begins_at


def _carried(row: Dialog, requests: Sequence[Message], questions: list[Question]) -> dict[str, object]:
    reminders = Reminder.objects.filter(dialog=row, removed_at=None).values_list("number", flat=True)
    return {
        "reminders": list(reminders),
        "taskdoc": bool(row.taskdoc.strip()),
        "request": requests[0].pk if requests else None,
        "requests": len(requests),
        "questions": [question.pk for question in questions],
    }


def _opening(
    row: Dialog, course: Course, *, earlier: Course, requests: Sequence[Message], questions: Sequence[Question]
) -> str:
    run = active_run(row)
    return prompt(
        "opening",
        language=row.work_language,
        number=course.number,
        earlier=earlier.number,
        opened_by=course.opened_by,
        tools=offers_own_tools(row) and not has_room_for_one(row),
        reminders=course.carried["reminders"],
        taskdoc=course.carried["taskdoc"],
        goal=run.goal if run else "",
        questions=[question.text for question in questions if not question.answer],
        answers=[question for question in questions if question.answer],
        requests=[message.content for message in requests],
    )


def unanswered(row: Dialog) -> tuple[Message, ...]:
    """Messages that a person typed and that no answer with text has followed yet, in any course, oldest first."""
    branch = course_branch(row.current_leaf)
    found = unanswered_in(branch)
    first = branch[0].course.carried.get("request") if branch and not is_answered(branch) else None
    return (*_typed_since(first, branch[0]), *found) if first else found


def _answered_by_person(row: Dialog) -> list[Question]:
    """Questions that the person answered in their box, and that no answer with text has followed yet."""
    branch = course_branch(row.current_leaf)
    asked_in = [message.pk for message in since_answer(branch)]
    found = Question.objects.filter(tool_call__message__in=asked_in, status=Question.Status.ANSWERED)
    carried = branch[0].course.carried.get("questions", ()) if branch and not is_answered(branch) else ()
    earlier = Question.objects.filter(dialog=row, pk__in=carried, status=Question.Status.ANSWERED)
    return [*earlier.exclude(answer=""), *found.exclude(answer="")]


def _typed_since(first: int, opening: Message) -> tuple[Message, ...]:
    """The typed messages of earlier courses from that message on. Empty if the message is not there."""
    found: list[Message] = []
    while opening.parent is not None:
        branch = course_branch(opening.parent)
        found = [one for one in branch if one.origin == MessageOrigin.TYPED] + found
        ids = [one.pk for one in found]
        if first in ids:
            return tuple(found[ids.index(first) :])
        opening = branch[0]
    return ()
