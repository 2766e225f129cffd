"""What the services themselves write is always a file that can be read back."""

from __future__ import annotations

import json

from django.contrib.auth.models import User

from dialogs.driver.writes.courses import start_course
from dialogs.models import Dialog, Message, Question, ToolCall
from dialogs.models.message import MessageOrigin, Role
from dialogs.providers.base import ToolCall as AskedCall
from dialogs.transcript.writes.dialog_row import add_message, lock, save
from dialogs.transfer import export_json, import_dialog
from dialogs.turns.writes.messages import answer_question, edit_message, pause, post_message, retry
from dialogs.turns.writes.tool_calls import add_calls, add_results, close_call


def call_tools(dialog: Dialog, *names: str) -> list[ToolCall]:
    """The agent answers with calls that are still open; nobody drives the dialog."""
    row = lock(dialog)
    answer = add_message(row, role=Role.ASSISTANT, origin=MessageOrigin.AGENT, content="", parent=row.current_leaf)
    add_calls(answer, [AskedCall(id="", name=name, arguments="{}") for name in names])
    row.handled_seq = row.wake_seq
    save(row, "handled_seq", "current_leaf", "last_seq")
    return list(ToolCall.objects.filter(message=answer))


def close_round(dialog: Dialog, calls: list[ToolCall]) -> None:
    row = lock(dialog)
    for call in calls:
        close_call(row, call, "done", f"{call.name} is done.")
    add_results(row)
    save(row, "current_leaf", "last_seq")


def assert_it_comes_back(dialog: Dialog, owner: User) -> None:
    exported = json.loads(json.dumps(export_json(dialog)))
    again = export_json(import_dialog(owner=owner, data=exported))
    assert len(again["calls"]) == len(exported["calls"])
    assert all(entry["result_message"] for entry in again["calls"])


def test_rounds_and_courses(dialog: Dialog, alice: User) -> None:
    post_message(dialog=dialog, content="Look inside.")
    close_round(dialog, call_tools(dialog, "list_files", "read_file"))
    call_tools(dialog, "ask_human", "clear_mind")
    assert_it_comes_back(dialog, alice)

    start_course(dialog=dialog)

    assert_it_comes_back(dialog, alice)


def test_an_edit_and_a_retry_beside_rounds(dialog: Dialog, alice: User) -> None:
    said = post_message(dialog=dialog, content="Look inside.")
    assert isinstance(said, Message)
    close_round(dialog, call_tools(dialog, "read_file"))
    retry(dialog=dialog)
    call_tools(dialog, "read_file")
    assert_it_comes_back(dialog, alice)

    edit_message(dialog=dialog, message=said, content="Look outside.")

    assert_it_comes_back(dialog, alice)


def test_a_question_answered_while_another_call_is_open(dialog: Dialog, alice: User) -> None:
    post_message(dialog=dialog, content="Look inside.")
    asking, _other = call_tools(dialog, "ask_human", "read_file")
    question = Question.objects.create(dialog=dialog, tool_call=asking, text="Which one?")
    assert_it_comes_back(dialog, alice)

    answer_question(dialog=dialog, question_id=question.pk, answer="The left one.")
    pause(dialog=dialog)

    assert_it_comes_back(dialog, alice)
