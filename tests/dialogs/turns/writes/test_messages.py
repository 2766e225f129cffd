"""Posting, editing, retrying, choosing a branch, stopping: what a person does to messages."""

from __future__ import annotations

import pytest
from django.utils import timezone

from dialogs.common.errors import DialogBusy, DialogError
from dialogs.models import Dialog, Message, QueuedMessage
from dialogs.turns.writes.messages import (
    choose_branch,
    edit_message,
    post_message,
    post_once,
    request_stop,
    retry,
    title_from,
)
from tests.builders import an_answer


def posted(dialog: Dialog, content: str = "Hello") -> Message:
    message = post_message(dialog=dialog, content=content)
    assert isinstance(message, Message)
    return message


@pytest.mark.parametrize("busy", [False, True])
def test_what_is_sent_again_because_no_answer_came_is_one_message(dialog: Dialog, busy: bool) -> None:
    if busy:
        posted(dialog, "Before")

    for _attempt in range(2):
        post_once(dialog=dialog, content="Hello\r\nagain", sending="one")

    kept = QueuedMessage.objects if busy else Message.objects
    assert [row.content for row in kept.filter(dialog=dialog)] == ["Hello\nagain"]


@pytest.mark.parametrize("second", [("Hello", "two"), ("Other", "one")])
def test_another_sending_and_another_text_are_messages_of_their_own(dialog: Dialog, second: tuple[str, str]) -> None:
    post_once(dialog=dialog, content="Hello", sending="one")
    post_once(dialog=dialog, content=second[0], sending=second[1])

    assert [row.content for row in QueuedMessage.objects.filter(dialog=dialog)] == [second[0]]


def test_a_form_that_names_no_sending_sends_whatever_it_says(dialog: Dialog) -> None:
    for _attempt in range(2):
        post_once(dialog=dialog, content="Hello", sending="")

    assert (Message.objects.count(), QueuedMessage.objects.count()) == (1, 1)


def test_a_refused_text_can_be_sent_once_it_fits(dialog: Dialog) -> None:
    with pytest.raises(DialogError):
        post_once(dialog=dialog, content=" ", sending="one")
    post_once(dialog=dialog, content="Hello", sending="one")

    assert [row.content for row in Message.objects.filter(dialog=dialog)] == ["Hello"]


@pytest.mark.parametrize(("by_person", "title"), [(False, "Plan a trip to Lisbon"), (True, "Trip")])
def test_the_first_message_names_the_dialog_unless_a_person_did(dialog: Dialog, by_person: bool, title: str) -> None:
    Dialog.objects.update(title="Trip" * by_person, titled_by_person=by_person)

    posted(dialog, "\n## Plan a trip to Lisbon\nwith two children")

    dialog.refresh_from_db()
    assert dialog.title == title


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Short", "Short"),
        ("word " * 30, "word " * 11 + "word…"),  # cut at a word
        ("长" * 100, "长" * 60 + "…"),  # no spaces to cut at
        ("###", "###"),  # nothing but signs
    ],
)
def test_a_title_is_the_first_line_cut_at_a_word(text: str, title: str) -> None:
    assert title_from(text) == title


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("a\0b", "a␀b"),  # PostgreSQL refuses NUL
        ("a\ud83db", "a\ufffdb"),  # half of a surrogate pair
        ("a\r\nb\rc", "a\nb\nc"),  # as browsers send line ends
        ("مرحبا 👩‍👧‍👦 \u202eabc", "مرحبا 👩‍👧‍👦 \u202eabc"),  # right-to-left and emoji stay
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),  # text is text; rendering makes it inert
    ],
)
def test_odd_text_is_stored_readably(dialog: Dialog, typed: str, stored: str) -> None:
    message = posted(dialog, typed)

    message.refresh_from_db()
    assert message.content == stored


def test_a_message_typed_during_a_turn_waits_for_its_own(dialog: Dialog) -> None:
    posted(dialog, "First")
    dialog.refresh_from_db()
    wake_seq = dialog.wake_seq

    second = post_message(dialog=dialog, content="Second")

    dialog.refresh_from_db()
    assert isinstance(second, QueuedMessage)
    assert dialog.current_leaf is not None
    assert dialog.current_leaf.content == "First"
    assert dialog.wake_seq > wake_seq  # so that the running turn cannot end without seeing it


def test_a_retry_needs_a_message_and_posting_brings_a_dialog_back_from_the_archive_only(
    dialog: Dialog,
) -> None:
    with pytest.raises(DialogError, match="no message"):
        retry(dialog=dialog)
    Dialog.objects.update(archived_at=timezone.now())
    posted(dialog)
    dialog.refresh_from_db()
    assert dialog.archived_at is None

    Dialog.objects.update(trashed_at=timezone.now())
    with pytest.raises(DialogError, match="trash"):
        post_message(dialog=dialog, content="Hello")


def test_only_the_last_user_message_can_be_edited(dialog: Dialog) -> None:
    first = posted(dialog, "One")
    an_answer(dialog)
    posted(dialog, "Two")
    an_answer(dialog)

    with pytest.raises(DialogError, match="last message"):
        edit_message(dialog=dialog, message=first, content="Three")


def test_a_running_turn_refuses_edits_retries_and_branches(dialog: Dialog) -> None:
    message = posted(dialog)

    with pytest.raises(DialogBusy):
        edit_message(dialog=dialog, message=message, content="Else")
    with pytest.raises(DialogBusy):
        retry(dialog=dialog)
    with pytest.raises(DialogBusy):
        choose_branch(dialog=dialog, message=message)


@pytest.mark.parametrize("is_due", [True, False])
def test_stop_ends_a_turn_that_no_worker_has_taken_and_does_nothing_without_one(dialog: Dialog, is_due: bool) -> None:
    if is_due:
        posted(dialog)

    request_stop(dialog=dialog)

    dialog.refresh_from_db()
    assert (dialog.answer_due, dialog.stop_requested) == (False, False)


def test_editing_makes_a_sibling_and_keeps_the_old_message(dialog: Dialog) -> None:
    old = posted(dialog, "Tell me of cats")
    an_answer(dialog)

    new = edit_message(dialog=dialog, message=old, content="Tell me of dogs")

    dialog.refresh_from_db()
    old.refresh_from_db()
    assert (old.content, new.parent, new.turn, dialog.current_leaf) == ("Tell me of cats", None, 1, new)
    assert dialog.answer_due
    an_answer(dialog)
    assert list(dialog.messages.values_list("seq", flat=True)) == [1, 2, 3, 4]
