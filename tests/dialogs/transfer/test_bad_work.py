"""A file whose notebook, courses, prompts, runs or calls are wrong is refused by the place where they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from dialogs.common.errors import DialogError
from dialogs.models import Dialog
from dialogs.transfer import export_json, import_dialog
from tests.dialogs.transfer.test_bad_files import put

Edit = Callable[[dict[str, Any]], None]


def refusal_of(edit: Edit, dialog: Dialog) -> str:
    data = json.loads(json.dumps(export_json(dialog)))
    edit(data)
    with pytest.raises(DialogError) as refusal:
        import_dialog(owner=dialog.owner, data=data)
    return str(refusal.value)


@pytest.mark.parametrize(
    ("edit", "place"),
    [
        (put("taskdoc", value="x" * 100_001), "taskdoc"),
        (put("work_language", value="fr"), "work_language"),
        (put("texts", value={}), "texts"),
        (put("generations", 0, "sent", "texts", value={"instructions": 99}), "generations[0].sent.texts.instructions"),
        (put("generations", 0, "sent", "texts", value={"letters": 0}), "letters"),
        (put("generations", 0, "sent", "texts", value=[]), "generations[0].sent.texts"),
        (put("courses", 1, "level", value="unknown"), "courses[1].level"),
        (put("courses", 1, "due", value="tea"), "courses[1].due"),
        (put("courses", 1, "countdown_turns", value=6), "courses[1].countdown_turns"),
        (put("courses", 1, "carried", value={}), "courses[1].carried"),
        (put("courses", 1, "carried", "reminders", value=[3]), "courses[1].carried.reminders"),
        (put("courses", 1, "carried", "request", value=99), "courses[1].carried.request"),
        (put("courses", 1, "carried", "questions", 0, "position", value=1), "courses[1].carried.questions"),
        (put("reminders", 1, "number", value=2), "reminders"),
        (put("reminders", 1, "course", value=3), "reminders[1].course"),
        (put("reminders", 0, "content", value=""), "reminders[0].content"),
        (put("reminders", 0, "content", value="x" * 8_001), "reminders[0].content"),
        (put("reminders", 0, "author", value="god"), "reminders[0].author"),
        (put("prompts", 0, "message", value=99), "prompts[0].message"),
        (put("prompts", 0, "message", value=3), "prompts[0].message"),  # an answer
        (put("prompts", 1, "message", value=5), "prompts"),  # the first one's
        (put("prompts", 0, "curated", value="yes"), "prompts[0].curated"),
        (put("runs", 0, "first_course", value=3), "runs[0].first_course"),
        (put("runs", 0, "ended_at", value=None), "runs[0].ended_by"),
        (put("runs", 0, "ended_by", value=""), "runs[0].ended_by"),
        (put("runs", 0, "goal", value=""), "runs[0].goal"),
    ],
)
def test_what_surrounds_the_messages_is_refused_by_its_place(edit: Edit, place: str, working_dialog: Dialog) -> None:
    assert place in refusal_of(edit, working_dialog)


@pytest.mark.parametrize(
    ("edit", "place"),
    [
        (put("calls", 0, "message", value=99), "calls[0].message"),
        (put("calls", 0, "message", value=5), "calls[0].message"),  # a person's
        (put("calls", 1, "position", value=0), "calls"),
        (put("calls", 1, "call_id", value="call_0"), "calls"),
        (put("calls", 0, "call_id", value=""), "calls[0].call_id"),
        (put("calls", 0, "call_id", value="another"), "calls[0].result_message"),
        (put("calls", 0, "name", value="x" * 201), "calls[0].name"),
        (put("calls", 0, "result_message", value=99), "calls[0].result_message"),
        (put("calls", 0, "result_message", value=5), "calls[0].result_message"),
        (put("calls", 0, "result_message", value=None), "messages[6]"),  # whose result is that then?
        (put("calls", value=[]), "messages[6]"),
        (put("calls", 1, "question", "choices", value=[1]), "calls[1].question.choices[0]"),
        (put("calls", 1, "question", "status", value="shy"), "calls[1].question.status"),
        (put("messages", 6, "course", value=2), "calls[0].result_message"),
        (put("messages", 6, "parts", "withheld", value=["x"]), "messages[6].parts.withheld"),
        # What would leave a call without its result, or a result before its call, on some branch.
        (put("messages", 8, "parent", value=6), "calls of message 6"),
        (put("messages", 8, "parent", value=7), "calls of message 6"),
        (put("messages", 7, "parent", value=6), "calls of message 6"),
        (put("messages", 6, "parent", value=5), "calls of message 6"),
        (put("current_leaf", value=6), "calls of message 6"),
        (put("current_leaf", value=7), "calls of message 6"),
    ],
)
def test_a_wrong_call_is_refused_by_its_place(edit: Edit, place: str, working_dialog: Dialog) -> None:
    assert place in refusal_of(edit, working_dialog)
