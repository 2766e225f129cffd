"""What was going on when a file was made has ended in the dialog that is made from it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils.dateparse import parse_datetime

from dialogs.context.border import chat_request, read_context
from dialogs.models import AutonomousRun, Dialog, Generation, Message, ToolCall
from dialogs.transcript.reads.path import course_branch
from dialogs.transfer import export_json, import_dialog
from dialogs.turns.writes.messages import post_message
from tests.dialogs.transfer.conftest import AGO, Writer


@pytest.fixture
def open_dialog(full_dialog: Dialog) -> Dialog:
    """An answer with three calls: one done, one that asks the person and waits, one not begun; and a run."""
    write = Writer(full_dialog)
    write.seq = full_dialog.last_seq
    caller = write.say("", parent=full_dialog.current_leaf, role="assistant")
    states = (("read_file", "done", "a cat"), ("ask_human", "waiting", ""), ("clear_mind", "pending", ""))
    calls = [
        ToolCall.objects.create(
            message=caller, position=position, call_id=f"c{position}", name=name, status=status, result=result
        )
        for position, (name, status, result) in enumerate(states)
    ]
    write.ask(calls[1], choices=["left", "right"])
    AutonomousRun.objects.create(dialog=full_dialog, goal="Find the cat", max_generations=30, first_course=1)
    full_dialog.current_leaf, full_dialog.last_seq = caller, caller.seq
    full_dialog.answer_due, full_dialog.paused_by = True, "person"
    full_dialog.save()
    return full_dialog


def imported(dialog: Dialog, owner: User, **changes: Any) -> Dialog:
    data = json.loads(json.dumps(export_json(dialog))) | changes
    return Dialog.objects.get(pk=import_dialog(owner=owner, data=data).pk)


def test_nobody_drives_an_imported_dialog(open_dialog: Dialog, alice: User) -> None:
    Generation.objects.filter(status="stopped").update(status="running")

    again = imported(open_dialog, alice)

    assert not again.is_busy
    assert not again.answer_due
    assert again.paused_by == ""
    assert set(again.generations.values_list("status", flat=True)) == {"failed", "finished", "interrupted"}


def test_open_calls_are_interrupted_their_question_is_withdrawn_and_a_person_goes_on_below_the_results(
    open_dialog: Dialog, alice: User
) -> None:
    again = imported(open_dialog, alice)

    calls = list(ToolCall.objects.filter(message__dialog=again))
    assert [call.status for call in calls] == ["done", "interrupted", "interrupted"]
    results = [call.result_message for call in calls]
    assert [result.content[:11] for result in results if result] == ["a cat", "Interrupted", "Interrupted"]
    assert again.current_leaf == results[-1]
    assert again.last_seq == again.current_leaf.seq
    question = again.questions.get()
    assert (question.status, question.answer, question.choices) == ("withdrawn", "", ["left", "right"])
    assert question.answered_at is not None
    # The branch is a request that a provider takes.
    sent = chat_request(read_context(again, course_branch(again.current_leaf))).messages
    assert [call.id for call in sent[-4].tool_calls] == ["c0", "c1", "c2"]
    assert [(message.role, message.tool_call_id) for message in sent[-3:]] == [("tool", f"c{n}") for n in range(3)]

    said = post_message(dialog=again, content="Go on.")

    assert isinstance(said, Message)
    assert said.parent == results[-1]


def test_a_run_ends_as_of_the_files_moment(open_dialog: Dialog, alice: User) -> None:
    run = imported(open_dialog, alice, exported_at=AGO.isoformat()).autonomous_runs.get()

    assert (run.ended_by, run.ended_at) == ("person", parse_datetime(AGO.isoformat()))


def test_a_round_left_open_on_another_branch_is_closed_there(open_dialog: Dialog, alice: User) -> None:
    open_dialog.current_leaf = Message.objects.get(content="A cat, and")
    open_dialog.save()

    again = imported(open_dialog, alice)

    assert again.current_leaf is not None
    assert again.current_leaf.content == "A cat, and"
    assert not ToolCall.objects.filter(message__dialog=again, result_message=None).exists()


def test_a_dialog_at_rest_stays_as_it_is(open_dialog: Dialog, alice: User) -> None:
    once = imported(open_dialog, alice)

    twice = imported(once, alice)

    assert export_json(twice) | {"exported_at": ""} == export_json(once) | {"exported_at": ""}
