"""The snapshot of a dialog's task: when one begins, what becomes of it, and when the next one takes its place."""

from __future__ import annotations

import pytest

from dialogs.agents.writes import add_reminder
from dialogs.common.errors import DialogError
from dialogs.driver.writes.courses import start_course
from dialogs.models import Agent, Dialog, ToolCall
from dialogs.models.reminder import Author
from dialogs.transcript.writes.task_snapshot import set_goal
from dialogs.turns.writes.autonomous import finish_run, start_run
from dialogs.turns.writes.messages import edit_message, post_message
from dialogs.turns.writes.tool_calls import add_results
from health.compaction.snapshot import TaskSnapshot, begun, from_json
from tests.builders import a_call, a_course, an_answer

GOAL = "Label the boxes in the cellar"


def snapshot(dialog: Dialog) -> TaskSnapshot | None:
    dialog.refresh_from_db()
    return from_json(dialog.task_snapshot)


def say(dialog: Dialog, text: str = GOAL) -> None:
    post_message(dialog=dialog, content=text)
    an_answer(dialog)


def called(dialog: Dialog, *names: str, status: str = ToolCall.Status.DONE, result: str = "ok") -> None:
    """One round of calls that has come to its end."""
    answer = an_answer(dialog, "")
    for name in names:
        a_call(answer, name=name, status=status, result=result)
    dialog.current_leaf = answer
    add_results(dialog)
    dialog.save()


def test_a_dialog_in_which_nothing_was_said_has_none(dialog: Dialog) -> None:
    assert snapshot(dialog) is None


def test_the_first_message_is_the_goal(dialog: Dialog) -> None:
    say(dialog)

    assert snapshot(dialog) == begun(GOAL)


def test_a_later_message_is_none(dialog: Dialog) -> None:
    say(dialog)
    say(dialog, "The red ones first")

    assert snapshot(dialog) == begun(GOAL)


@pytest.mark.parametrize("greeting", ["hi", "Hello there!", "Good morning, how are you?", "你好", "您好，在吗？", "👋"])
def test_a_greeting_is_no_goal_once_something_is_asked_for(dialog: Dialog, greeting: str) -> None:
    say(dialog, greeting)
    say(dialog)

    assert snapshot(dialog) == begun(GOAL)


def test_a_greeting_that_was_acted_on_stays(dialog: Dialog) -> None:
    say(dialog, "hi")
    called(dialog, "read_file")
    say(dialog)

    found = snapshot(dialog)

    assert found is not None
    assert (found.goal, found.completed_actions) == ("hi", ("read_file",))


def test_a_person_words_the_goal_anew_and_what_was_done_stays(dialog: Dialog) -> None:
    say(dialog)
    called(dialog, "read_file")

    set_goal(dialog=dialog, goal="Label the boxes in the attic")

    found = snapshot(dialog)
    assert found is not None
    assert (found.goal, found.completed_actions) == ("Label the boxes in the attic", ("read_file",))


def test_where_nothing_was_asked_for_there_is_no_goal_to_reword(dialog: Dialog) -> None:
    with pytest.raises(DialogError, match="No task has begun"):
        set_goal(dialog=dialog, goal="Label the boxes")


def test_calls_are_actions_in_their_order(dialog: Dialog) -> None:
    say(dialog)
    called(dialog, "read_file", "write_file")
    called(dialog, "read_file")

    found = snapshot(dialog)

    assert found is not None
    assert (found.current_phase, found.completed_actions) == ("executing", ("read_file", "write_file", "read_file"))


@pytest.mark.parametrize("status", [ToolCall.Status.FAILED, ToolCall.Status.INTERRUPTED])
def test_a_call_that_failed_is_an_observation_and_no_action(dialog: Dialog, status: str) -> None:
    say(dialog)
    called(dialog, "read_file", status=status, result="There is no such file.")

    found = snapshot(dialog)

    assert found is not None
    assert (found.current_phase, found.completed_actions) == ("planning", ())
    assert found.key_observations == ("read_file failed: There is no such file.",)


def test_a_call_that_was_withdrawn_is_neither(dialog: Dialog) -> None:
    say(dialog)
    called(dialog, "read_file", status=ToolCall.Status.WITHDRAWN)

    assert snapshot(dialog) == begun(GOAL)


def test_what_the_agent_notes_is_an_observation_and_what_a_person_notes_is_not(dialog: Dialog) -> None:
    say(dialog)
    add_reminder(dialog=dialog, content="The key hangs\nby the door", author=Author.AGENT)
    add_reminder(dialog=dialog, content="Buy milk", author=Author.PERSON)

    found = snapshot(dialog)

    assert found is not None
    assert found.key_observations == ("The key hangs by the door",)


def test_a_goal_of_its_own_begins_a_task_and_its_end_completes_it(dialog: Dialog) -> None:
    say(dialog, "Hello")
    start_run(dialog=dialog, goal=GOAL, max_generations=3)
    assert snapshot(dialog) == begun(GOAL)

    finish_run(dialog, summary="Twelve boxes are labelled.")

    found = snapshot(dialog)
    assert found is not None
    assert (found.current_phase, found.key_observations) == ("completed", ("Twelve boxes are labelled.",))


def test_a_call_after_the_end_leaves_the_task_completed(dialog: Dialog) -> None:
    say(dialog, "Hello")
    start_run(dialog=dialog, goal=GOAL, max_generations=3)
    finish_run(dialog, summary="")
    called(dialog, "goal_done")

    found = snapshot(dialog)

    assert found is not None
    assert (found.current_phase, found.completed_actions, found.key_observations) == ("completed", ("goal_done",), ())


def test_what_is_said_after_the_end_is_the_next_task(dialog: Dialog) -> None:
    start_run(dialog=dialog, goal=GOAL, max_generations=3)
    finish_run(dialog, summary="Done.")
    Dialog.objects.update(handled_seq=dialog.wake_seq + 1, wake_seq=dialog.wake_seq + 1)

    post_message(dialog=dialog, content="And now the attic")

    assert snapshot(dialog) == begun("And now the attic")


def test_a_course_that_a_person_begins_is_for_the_next_task(dialog: Dialog) -> None:
    say(dialog)
    called(dialog, "read_file")
    dialog.refresh_from_db()

    start_course(dialog=dialog)
    assert snapshot(dialog) is None

    say(dialog, "And now the attic")
    assert snapshot(dialog) == begun("And now the attic")


def test_a_course_that_the_agent_begins_goes_on_with_the_task(dialog: Dialog) -> None:
    say(dialog)
    called(dialog, "read_file")
    a_course(dialog, opened_by="agent")

    found = snapshot(dialog)

    assert found is not None
    assert (found.goal, found.completed_actions) == (GOAL, ("read_file",))


def test_the_goal_reworded_begins_the_task_anew(dialog: Dialog) -> None:
    say(dialog)
    called(dialog, "read_file")
    dialog.refresh_from_db()

    edit_message(dialog=dialog, message=dialog.messages.get(content=GOAL), content="Count the boxes")

    assert snapshot(dialog) == begun("Count the boxes")


def test_another_message_reworded_changes_no_goal(dialog: Dialog) -> None:
    say(dialog)
    say(dialog, "The red ones first")
    dialog.refresh_from_db()

    edit_message(dialog=dialog, message=dialog.messages.get(content="The red ones first"), content="The blue ones")

    assert snapshot(dialog) == begun(GOAL)


def test_where_a_client_drives_nothing_is_noted(dialog: Dialog, agent: Agent) -> None:
    say(dialog)
    Dialog.objects.update(is_client_driven=True)
    dialog.refresh_from_db()

    called(dialog, "recall")

    assert snapshot(dialog) == begun(GOAL)
