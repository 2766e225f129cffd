"""What survives a course: reminders that keep their numbers, the Taskdoc, and editors who notice each other."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.utils import timezone

from dialogs.agents.writes import (
    MOST_REMINDERS,
    REMINDER_CHARS,
    TASKDOC_CHARS,
    add_reminder,
    move_reminder,
    remove_reminder,
    restore_reminder,
    update_reminder,
    write_taskdoc,
)
from dialogs.common.errors import DialogError
from dialogs.models import LLM, Course, Dialog, Reminder
from dialogs.models.reminder import Author
from dialogs.turns.writes.messages import post_message
from tests.builders import an_answer
from tests.dialogs.compacting_builders import long_text

WRITES: dict[str, Callable[[Dialog], object]] = {
    "add": lambda dialog: add_reminder(dialog=dialog, content="New", author=Author.PERSON),
    "update": lambda dialog: update_reminder(dialog=dialog, number=1, content="New", author=Author.PERSON),
    "remove": lambda dialog: remove_reminder(dialog=dialog, number=1),
    "restore": lambda dialog: restore_reminder(dialog=dialog, number=3),
    "move": lambda dialog: move_reminder(dialog=dialog, number=1, up=False),
    "taskdoc": lambda dialog: write_taskdoc(dialog=dialog, content="New"),
}
EVERY_WRITE = pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)


def note(dialog: Dialog, content: str = "Note", author: Author = Author.PERSON) -> Reminder:
    return add_reminder(dialog=dialog, content=content, author=author)


def three(dialog: Dialog) -> None:
    """Reminders 1, 2 and 3."""
    for content in ("one", "two", "three"):
        note(dialog, content)


def kept(dialog: Dialog) -> list[int]:
    return list(dialog.reminders.filter(removed_at=None).values_list("number", flat=True))


def everything(dialog: Dialog) -> tuple[object, ...]:
    return Dialog.objects.values().get(pk=dialog.pk), *dialog.reminders.order_by("number").values()


# --- Numbers and order ------------------------------------------------------------------------


def test_a_new_reminder_stands_at_the_end_under_the_next_number_and_none_is_used_again(dialog: Dialog) -> None:
    three(dialog)
    move_reminder(dialog=dialog, number=3, up=True)
    assert note(dialog).number == 4
    assert kept(dialog) == [1, 3, 2, 4]

    remove_reminder(dialog=dialog, number=4)

    assert note(dialog).number == 5


def test_every_dialog_counts_its_own_reminders(dialog: Dialog) -> None:
    other = Dialog.objects.create(owner=dialog.owner, agent=dialog.agent, llm=dialog.llm, active_at=timezone.now())
    Course.objects.create(dialog=other, number=1)
    note(other)
    with pytest.raises(DialogError, match="There are: none"):
        remove_reminder(dialog=dialog, number=1)

    assert note(dialog).number == 1
    with pytest.raises(DialogError, match="There are: 1"):
        remove_reminder(dialog=dialog, number=2)


@pytest.mark.parametrize(
    ("number", "up", "order"),
    [(2, True, [2, 1, 3]), (2, False, [1, 3, 2]), (1, True, [1, 2, 3]), (3, False, [1, 2, 3])],
)
def test_a_reminder_moves_past_its_neighbour_or_stays_at_the_end(
    dialog: Dialog, number: int, up: bool, order: list[int]
) -> None:
    three(dialog)

    move_reminder(dialog=dialog, number=number, up=up)

    assert kept(dialog) == order


def test_a_move_does_not_stop_at_what_was_removed_which_comes_back_at_the_end_under_its_number(dialog: Dialog) -> None:
    three(dialog)
    remove_reminder(dialog=dialog, number=2)

    move_reminder(dialog=dialog, number=3, up=True)
    assert kept(dialog) == [3, 1]

    restore_reminder(dialog=dialog, number=2)
    assert kept(dialog) == [3, 1, 2]


def test_reminders_at_one_place_can_be_moved_apart(dialog: Dialog) -> None:
    three(dialog)
    Reminder.objects.update(position=1)

    move_reminder(dialog=dialog, number=1, up=False)

    assert kept(dialog) == [2, 1, 3]


# --- Texts ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("  Go  \n", "Go"),
        ("first\n\n    indented\n- list", "first\n\n    indented\n- list"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("a\0b", "a␀b"),  # PostgreSQL refuses NUL
        ("a\ud83d", "a\ufffd"),  # half of a pair
        ("长" * REMINDER_CHARS, "长" * REMINDER_CHARS),  # the longest
    ],
)
def test_a_text_is_kept_as_it_was_meant(dialog: Dialog, typed: str, stored: str) -> None:
    note(dialog, "Earlier")

    update_reminder(dialog=dialog, number=1, content=typed, author=Author.PERSON)
    write_taskdoc(dialog=dialog, content=typed)

    assert dialog.reminders.get().content == stored
    assert note(dialog, typed).content == stored
    assert Dialog.objects.get().taskdoc == stored


def test_a_dialog_keeps_fifty_reminders_and_no_more(dialog: Dialog) -> None:
    for _ in range(MOST_REMINDERS):
        note(dialog)
    with pytest.raises(DialogError, match="50 reminders already"):
        note(dialog)

    # A removed one makes room, and then may not come back.
    remove_reminder(dialog=dialog, number=1)
    note(dialog)
    with pytest.raises(DialogError, match="50 reminders already"):
        restore_reminder(dialog=dialog, number=1)

    assert len(kept(dialog)) == MOST_REMINDERS


def test_a_taskdoc_has_a_largest_size_and_may_be_emptied(dialog: Dialog) -> None:
    write_taskdoc(dialog=dialog, content="x" * TASKDOC_CHARS)

    with pytest.raises(DialogError, match="100,000 characters"):
        write_taskdoc(dialog=dialog, content="y" * (TASKDOC_CHARS + 1))
    assert Dialog.objects.get().taskdoc == "x" * TASKDOC_CHARS

    write_taskdoc(dialog=dialog, content=" ")
    assert Dialog.objects.get().taskdoc == ""


# --- Refusals that both sides understand ---------------------------------------------------------


@EVERY_WRITE
def test_a_dialog_in_the_trash_refuses_every_write(dialog: Dialog, write: Callable[[Dialog], object]) -> None:
    three(dialog)
    remove_reminder(dialog=dialog, number=3)
    Dialog.objects.update(trashed_at=timezone.now())
    before = everything(dialog)

    with pytest.raises(DialogError, match="trash"):
        write(dialog)

    assert everything(dialog) == before


@EVERY_WRITE
def test_every_write_is_news_for_the_browsers(dialog: Dialog, write: Callable[[Dialog], object]) -> None:
    three(dialog)
    remove_reminder(dialog=dialog, number=3)
    version = Dialog.objects.get().version

    write(dialog)

    assert Dialog.objects.get().version == version + 1


# --- Two editors --------------------------------------------------------------------------------


def test_who_read_the_newest_text_may_replace_it_again_and_again(dialog: Dialog) -> None:
    version, taskdoc_version = note(dialog).version, dialog.taskdoc_version

    for content in ("Second", "Third"):
        version = update_reminder(
            dialog=dialog, number=1, content=content, author=Author.PERSON, version=version
        ).version
        write_taskdoc(dialog=dialog, content=content, version=taskdoc_version)
        taskdoc_version += 1

    assert (dialog.reminders.get().content, Dialog.objects.get().taskdoc) == ("Third", "Third")


def test_moving_and_restoring_do_not_disturb_who_edits_the_text(dialog: Dialog) -> None:
    three(dialog)
    remove_reminder(dialog=dialog, number=2)
    restore_reminder(dialog=dialog, number=2)
    move_reminder(dialog=dialog, number=2, up=True)

    edited = update_reminder(dialog=dialog, number=2, content="Mine", author=Author.PERSON, version=1)

    assert edited.content == "Mine"


# --- Who wrote it, and when ------------------------------------------------------------------------


def test_an_update_says_who_wrote_last_and_in_which_course(dialog: Dialog) -> None:
    note(dialog, author=Author.AGENT)
    dialog.courses.create(number=2)

    update_reminder(dialog=dialog, number=1, content="New", author=Author.PERSON)

    reminder = dialog.reminders.get()
    assert (reminder.author, reminder.course and reminder.course.number) == ("person", 2)


def test_in_an_older_branch_it_is_written_in_that_branchs_course(dialog: Dialog) -> None:
    post_message(dialog=dialog, content="Hello")
    an_answer(dialog)
    dialog.courses.create(number=2)

    assert note(dialog).course == dialog.courses.get(number=1)


@pytest.mark.parametrize(
    ("level", "author", "is_continuation"),
    [
        ("healthy", Author.AGENT, False),
        ("unknown", Author.AGENT, False),
        ("caution", Author.AGENT, True),
        ("critical", Author.AGENT, True),
        ("caution", Author.PERSON, False),
        ("critical", Author.PERSON, False),
    ],
)
def test_what_the_agent_writes_while_room_is_short_is_its_continuation_package(
    dialog: Dialog, level: str, author: Author, is_continuation: bool
) -> None:
    note(dialog)
    Course.objects.update(level=level)

    update_reminder(dialog=dialog, number=1, content="First step", author=author)
    note(dialog, author=author)

    assert list(dialog.reminders.values_list("is_continuation", flat=True)) == [is_continuation] * 2


def test_a_person_who_corrects_the_continuation_package_leaves_it_one(dialog: Dialog) -> None:
    Course.objects.update(level="critical")
    note(dialog, author=Author.AGENT)

    update_reminder(dialog=dialog, number=1, content="Corrected", author=Author.PERSON)

    assert dialog.reminders.get().is_continuation


# --- A quarter of the room --------------------------------------------------------------------


def test_an_agent_brings_its_reminders_to_no_more_than_a_quarter_of_the_room(dialog: Dialog) -> None:
    note(dialog, long_text(1, 6), Author.AGENT)

    with pytest.raises(DialogError, match=r"about \d+ tokens, and at most \d+ fit"):
        note(dialog, long_text(2, 6), Author.AGENT)

    assert kept(dialog) == [1]


def test_an_agent_makes_a_reminder_shorter_but_not_longer_where_all_are_above_that(dialog: Dialog) -> None:
    note(dialog, long_text(1, 30))

    with pytest.raises(DialogError, match=r"at most \d+ fit"):
        update_reminder(dialog=dialog, number=1, content=long_text(1, 31), author=Author.AGENT)

    assert update_reminder(dialog=dialog, number=1, content=long_text(1, 20), author=Author.AGENT).version == 2


def test_where_the_room_is_unknown_no_reminder_is_refused_for_it(dialog: Dialog) -> None:
    LLM.objects.update(context_length=None)
    dialog.refresh_from_db()

    assert note(dialog, long_text(1, 30), Author.AGENT).number == 1
