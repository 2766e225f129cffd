"""The beginning of a request stays put: what a person changes is told beside the newest words until a rewrite."""

from __future__ import annotations

from typing import Any

import pytest

from dialogs.agents.writes import add_reminder, remove_reminder, update_reminder, write_taskdoc
from dialogs.driver.writes.courses import start_course
from dialogs.models import Dialog
from dialogs.models.reminder import Author
from dialogs.transcript.writes.marks import lay_down, take_back
from tests.dialogs.driver.conftest import Play, ask_and_drive, calling, said

pytestmark = pytest.mark.django_db(transaction=True)


def system(request: dict[str, Any]) -> str:
    return str(request["messages"][0]["content"])


def newest(request: dict[str, Any]) -> str:
    return str(request["messages"][-1]["content"])


def say(dialog: Dialog, words: str) -> None:
    ask_and_drive(dialog, words)


@pytest.fixture
def begun(dialog: Dialog) -> Dialog:
    """Before its first request it has a Taskdoc, a rule and two reminders."""
    write_taskdoc(dialog=dialog, content="Paint the fence.")
    lay_down(dialog=dialog, text="Never on a Sunday.")
    for content in ("Shed seven.", "Two coats."):
        add_reminder(dialog=dialog, content=content, author=Author.PERSON)
    dialog.refresh_from_db()
    return dialog


def test_what_a_person_changes_stands_above_their_next_words_and_the_beginning_stays(begun: Dialog, play: Play) -> None:
    requests = play(said(10))
    say(begun, "Begin.")
    write_taskdoc(dialog=begun, content="Paint the gate.")
    lay_down(dialog=begun, text="Use no ladder.")
    take_back(dialog=begun, text="Never on a Sunday.")
    update_reminder(dialog=begun, number=1, content="Shed nine.", author=Author.PERSON)
    remove_reminder(dialog=begun, number=2)

    say(begun, "Go on.")

    first, second = requests()
    assert system(first) == system(second)
    for line in (
        "Taskdoc: Paint the gate.",
        "Standing rule: Use no ladder.",
        "No longer in force: Never on a Sunday.",
        "Reminder 1: Shed nine.",
        "Reminder 2 is removed.",
    ):
        assert line in newest(second)
    assert newest(second).endswith("Go on."), "the newest words end the request"


def test_what_was_changed_back_needs_no_word(begun: Dialog, play: Play) -> None:
    requests = play(said(10))
    say(begun, "Begin.")
    for content in ("Paint the gate.", "Paint the fence."):
        write_taskdoc(dialog=begun, content=content)

    say(begun, "Go on.")

    assert newest(requests()[1]) == "Go on."


def test_what_the_agent_changed_itself_stands_in_its_calls_only(begun: Dialog, play: Play) -> None:
    requests = play(
        calling(10, "update_taskdoc", '{"content": "Paint the gate."}'),
        calling(10, "add_reminder", '{"content": "Third.\\n"}'),
        calling(10, "update_reminder", '{"number": 1, "content": "Shed nine."}'),
        calling(10, "delete_reminder", '{"number": 2}'),
        said(10),
    )
    say(begun, "Begin.")

    say(begun, "Go on.")

    assert len({system(request) for request in requests()}) == 1
    assert newest(requests()[-1]) == "Go on."


def test_a_persons_change_of_what_the_agent_wrote_is_told(begun: Dialog, play: Play) -> None:
    requests = play(calling(10, "add_reminder", '{"content": "Third."}'), said(10))
    say(begun, "Begin.")
    remove_reminder(dialog=begun, number=3)

    say(begun, "Go on.")

    assert "Reminder 3 is removed." in newest(requests()[-1])


def test_a_new_course_begins_with_everything_as_it_is_then(begun: Dialog, play: Play) -> None:
    requests = play(said(10))
    say(begun, "Begin.")
    write_taskdoc(dialog=begun, content="Paint the gate.")

    start_course(dialog=begun)
    say(begun, "Go on.")

    assert "Paint the gate." in system(requests()[-1])
    assert "Changed by the person" not in newest(requests()[-1])


def test_a_long_change_is_a_new_beginning(begun: Dialog, play: Play) -> None:
    requests = play(said(10))
    say(begun, "Begin.")
    write_taskdoc(dialog=begun, content="Paint the gate. " * 300)

    say(begun, "Go on.")

    assert "Paint the gate." in system(requests()[-1])
    assert newest(requests()[-1]) == "Go on."
