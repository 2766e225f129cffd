"""Marks: pins and priorities of messages, and what may be marked."""

from __future__ import annotations

import pytest

from dialogs.common.errors import DialogError
from dialogs.models import Dialog, Message, MessageMark
from dialogs.models.message import MessageOrigin, Role
from dialogs.transcript.writes.dialog_row import add_message
from dialogs.transcript.writes.marks import set_pin, set_priority
from health.configured import ONLY
from health.models import ContextSettings
from tests.dialogs.compacting_builders import a_history


@pytest.fixture
def message(dialog: Dialog) -> Message:
    return a_history(dialog, pairs=1)[1]


def test_a_message_is_pinned_and_let_go_again(dialog: Dialog, message: Message) -> None:
    set_pin(dialog=dialog, message_id=message.pk, pinned=True)
    assert MessageMark.objects.get().pinned

    set_pin(dialog=dialog, message_id=message.pk, pinned=False)

    assert not MessageMark.objects.exists()


def test_a_priority_has_an_area(dialog: Dialog, message: Message) -> None:
    set_priority(dialog=dialog, message_id=message.pk, priority="1", area="  To Do \n List ")

    mark = MessageMark.objects.get()
    assert (mark.message, mark.priority, mark.area, mark.pinned) == (message, 1, "To Do List", False)


@pytest.mark.parametrize("chosen", ["", "3"])
def test_an_area_that_staff_put_first_makes_it_p1(dialog: Dialog, message: Message, chosen: str) -> None:
    ContextSettings.objects.create(pk=ONLY, values="context_config:\n  priority_areas: [To Do List, Calendar]\n")

    set_priority(dialog=dialog, message_id=message.pk, priority=chosen, area="to do list")

    mark = MessageMark.objects.get()
    assert (mark.priority, mark.area) == (1, "to do list")


def test_without_a_priority_there_is_no_area(dialog: Dialog, message: Message) -> None:
    set_pin(dialog=dialog, message_id=message.pk, pinned=True)
    set_priority(dialog=dialog, message_id=message.pk, priority="2", area="Calendar")

    set_priority(dialog=dialog, message_id=message.pk, priority="", area="Calendar")

    mark = MessageMark.objects.get()
    assert (mark.priority, mark.area, mark.pinned) == (None, "", True)


@pytest.mark.parametrize("priority", ["0", "4", "P1", "one"])
def test_another_priority_is_refused(dialog: Dialog, message: Message, priority: str) -> None:
    with pytest.raises(DialogError):
        set_priority(dialog=dialog, message_id=message.pk, priority=priority)

    assert not MessageMark.objects.exists()


def test_an_area_is_short(dialog: Dialog, message: Message) -> None:
    with pytest.raises(DialogError):
        set_priority(dialog=dialog, message_id=message.pk, priority="1", area="x" * 81)


def test_what_dominds_inserted_cannot_be_marked(dialog: Dialog, message: Message) -> None:
    inserted = add_message(dialog, role=Role.USER, origin=MessageOrigin.PUSH, content="Go on.", parent=message)

    with pytest.raises(DialogError):
        set_pin(dialog=dialog, message_id=inserted.pk, pinned=True)


def test_a_message_of_another_dialog_is_out_of_reach(dialog: Dialog, message: Message) -> None:
    other = Dialog.objects.create(owner=dialog.owner, agent=dialog.agent, llm=dialog.llm, active_at=dialog.active_at)

    with pytest.raises(DialogError):
        set_pin(dialog=other, message_id=message.pk, pinned=True)


def test_browsers_hear_of_a_mark(dialog: Dialog, message: Message) -> None:
    before = Dialog.objects.get().version

    set_pin(dialog=dialog, message_id=message.pk, pinned=True)

    assert Dialog.objects.get().version > before
