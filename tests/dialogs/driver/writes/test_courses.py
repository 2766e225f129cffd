"""A new course at a person's word: what is carried, what is withdrawn, and when there is nothing to leave behind."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from dialogs.agents.writes import add_reminder, remove_reminder, write_taskdoc
from dialogs.common.errors import DialogError
from dialogs.driver.writes.courses import start_course
from dialogs.models import Dialog, Message, Question, ToolCall
from dialogs.models.reminder import Author
from dialogs.turns.reads.turns import dialog_to_drive, state_of
from dialogs.turns.writes.lease import claim
from dialogs.turns.writes.messages import choose_branch, edit_message, go_on, pause, post_message
from tests.builders import an_answer


@pytest.fixture
def answered(dialog: Dialog) -> Dialog:
    """Alice's dialog with one question and its answer, at rest."""
    post_message(dialog=dialog, content="Hello")
    an_answer(dialog)
    return dialog


def asking(dialog: Dialog, text: str = "Red or blue?") -> Question:
    """The newest answer asks the person something, and the dialog waits."""
    dialog.refresh_from_db()
    call = ToolCall.objects.create(
        message=dialog.current_leaf, position=0, call_id="q", name="ask_human", status="waiting"
    )
    dialog.answer_due = True
    dialog.save()
    return Question.objects.create(dialog=dialog, tool_call=call, text=text)


def opening(dialog: Dialog) -> Message:
    return Message.objects.get(dialog=dialog, origin="handover")


def test_a_new_course_begins_with_a_message_of_its_own(answered: Dialog) -> None:
    """The agent says nothing before it is asked, and what is said then belongs to the new course."""
    course = start_course(dialog=answered)

    answered.refresh_from_db()
    assert (course.number, course.opened_by, answered.current_leaf) == (2, "user", opening(answered))
    assert (opening(answered).course, opening(answered).role) == (course, "user")
    assert "read_course(course=1)" in opening(answered).content
    assert (answered.answer_due, answered.is_busy) == (False, False)
    message = post_message(dialog=answered, content="Next")
    assert isinstance(message, Message)
    assert message.course == course


def test_it_says_what_is_carried(answered: Dialog) -> None:
    for content in ("One", "Two", "Three"):
        add_reminder(dialog=answered, content=content, author=Author.PERSON)
    remove_reminder(dialog=answered, number=2)
    write_taskdoc(dialog=answered, content="Ship it.")

    course = start_course(dialog=answered)

    assert course.carried == {"reminders": [1, 3], "taskdoc": True, "request": None, "requests": 0, "questions": []}


def test_a_pending_question_is_withdrawn_and_listed(answered: Dialog) -> None:
    question = asking(answered)

    course = start_course(dialog=answered)

    question.refresh_from_db()
    assert (question.status, question.tool_call.status) == ("withdrawn", "withdrawn")
    assert course.carried["questions"] == [question.pk]
    assert "Red or blue?" in opening(answered).content


def test_a_course_that_has_just_begun_cannot_be_left_nor_a_message_of_an_earlier_one_be_edited(
    dialog: Dialog,
) -> None:
    with pytest.raises(DialogError, match="just begun"):
        start_course(dialog=dialog)
    first = post_message(dialog=dialog, content="Hello")
    an_answer(dialog)
    start_course(dialog=dialog)

    with pytest.raises(DialogError, match="just begun"):
        start_course(dialog=dialog)
    with pytest.raises(DialogError, match="in the course"):
        edit_message(dialog=dialog, message=first, content="Changed")


def test_nothing_begins_in_the_trash(answered: Dialog) -> None:
    Dialog.objects.update(trashed_at=timezone.now())

    with pytest.raises(DialogError, match="trash"):
        start_course(dialog=answered)


def test_another_branch_begins_with_fresh_counters(answered: Dialog) -> None:
    course = answered.courses.get()
    course.level, course.countdown_turns, course.due = "critical", 0, "clear"
    course.save()

    edit_message(dialog=answered, message=Message.objects.get(content="Hello"), content="Hello again")

    course.refresh_from_db()
    assert (course.level, course.countdown_turns, course.due) == ("healthy", 5, "")


def test_going_back_to_an_earlier_branch_goes_back_to_its_course(answered: Dialog) -> None:
    """In which its first message stays when it is edited."""
    first = Message.objects.get(content="Hello")
    edited = edit_message(dialog=answered, message=first, content="Other")
    Dialog.objects.update(answer_due=False, handled_seq=100)
    start_course(dialog=answered)

    choose_branch(dialog=answered, message=first)

    answered.refresh_from_db()
    assert answered.current_leaf is not None
    assert answered.current_leaf.course.number == 1
    assert edited.course.number == 1
    assert edit_message(dialog=answered, message=first, content="Third").course.number == 1


def test_pausing_holds_what_is_due_and_going_on_takes_it_up(answered: Dialog) -> None:
    answered.courses.update(level="critical", due="critical")

    pause(dialog=answered)
    held = state_of(dialog_to_drive(answered.pk))
    go_on(dialog=answered)

    assert (held.paused, state_of(dialog_to_drive(answered.pk)).paused) == (True, False)
    answered.refresh_from_db()
    assert answered.is_busy


@pytest.mark.parametrize(("roles", "state"), [((), (False, False)), (("waiting",), (True, True))])
def test_the_driver_sees_that_only_a_person_can_go_on(answered: Dialog, roles: Any, state: tuple[bool, bool]) -> None:
    if roles:
        asking(answered)

    found = state_of(dialog_to_drive(answered.pk))

    assert (found.waiting_for_person, found.round_open) == state


def test_calls_that_a_dead_worker_left_running_are_pending_or_interrupted(answered: Dialog) -> None:

    answered.refresh_from_db()
    for position, idempotent in enumerate((True, False)):
        ToolCall.objects.create(
            message=answered.current_leaf,
            position=position,
            call_id=str(position),
            name="x",
            status="running",
            idempotent=idempotent,
        )
    Dialog.objects.update(wake_seq=100)

    claim(answered.pk)

    assert list(ToolCall.objects.values_list("status", flat=True)) == ["pending", "interrupted"]
