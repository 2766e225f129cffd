"""A file from outside that is wrong is refused by the place where it is wrong, and nothing is stored."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from pydantic import ValidationError

from dialogs.agents.writes import MOST_REMINDERS, add_reminder
from dialogs.common.errors import DialogError
from dialogs.models import Dialog, Message
from dialogs.models.reminder import Author
from dialogs.transfer import export_json, import_dialog, importing, parse_json

Edit = Callable[[dict[str, Any]], None]


def put(*path: str | int, value: Any) -> Edit:
    """An edit of a good file: set what lies at this path."""

    def edit(data: Any) -> None:
        *way, last = path
        for step in way:
            data = data[step]
        data[last] = value

    return edit


def repeat_first_message(data: dict[str, Any]) -> None:
    data["messages"].append(data["messages"][0])


def refusal_of(edit: Edit, dialog: Dialog) -> str:
    data = json.loads(json.dumps(export_json(dialog)))
    edit(data)
    with pytest.raises(DialogError) as refusal:
        import_dialog(owner=dialog.owner, data=data)
    return str(refusal.value)


def nested(depth: int) -> Any:
    return {"x": nested(depth - 1)} if depth else 1


@pytest.mark.parametrize(
    ("edit", "place"),
    [
        (put("format", value="dominds.dialog/9"), "This version reads dominds.dialog/5 to dominds.dialog/8."),
        (put("format", value="dominds.dialog/4"), "The file has the format dominds.dialog/4."),
        (put("extra", value=1), "extra"),
        (lambda data: data.pop("courses"), "courses"),
        (put("courses", value=[]), "courses"),
        (put("courses", value={}), "courses"),
        (put("title", value="x" * 201), "title"),
        (put("active_at", value="yesterday"), "active_at"),
        (put("active_at", value="2026-01-01T00:00:00"), "active_at"),  # no time zone
        (put("current_leaf", value=99), "current_leaf"),
        (put("messages", 0, value="hello"), "messages[0]"),
        (put("messages", 0, "seq", value=0), "messages[0].seq"),
        (put("messages", 0, "seq", value=True), "messages[0].seq"),
        (put("messages", 0, "seq", value=2**31), "messages[0].seq"),
        (put("messages", 0, "role", value="system"), "messages[0].role"),
        (put("messages", 0, "role", value=["user"]), "messages[0].role"),
        (put("messages", 0, "content", value=None), "messages[0].content"),
        (put("messages", 0, "parts", value=[]), "messages[0].parts"),
        (put("messages", 0, "parts", value={"x": float("nan")}), "messages[0].parts.x"),
        (put("messages", 0, "parts", value=nested(99)), "nested too deeply"),
        (put("messages", 0, "cut_short", value="no"), "messages[0].cut_short"),
        (put("messages", 0, "course", value=7), "messages[0].course"),
        (put("messages", 0, "parent", value=1), "messages[0].parent"),  # its own parent
        (put("messages", 0, "parent", value=3), "messages[0].parent"),  # a younger one
        (repeat_first_message, "messages"),
        (put("generations", 1, "number", value=1), "generations"),
        (put("generations", 0, "prompt_leaf", value=50), "generations[0].prompt_leaf"),
        (put("generations", 0, "sent", "messages", value=[50]), "generations[0].sent.messages"),
        (put("generations", 1, "usage", value=None), "generations[1].usage"),
        (put("generations", 1, "usage", "prompt_tokens", value=-1), "generations[1].usage.prompt_tokens"),
        # A level is what the numbers say, whatever a file claims.
        (put("generations", 1, "reading", "level", value="healthy"), "generations[1].reading"),
        (put("generations", 2, "reading", "level", value="critical"), "generations[2].reading"),
        (put("messages", 0, "role", value="assistant"), "messages[0].role"),  # typed, by an agent?
        (put("active_at", value="0001-01-01T00:00:00+14:00"), "active_at"),
        # The notebook, courses, prompts and runs.
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
        # Calls.
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
        # What compaction knows.
        (put("marks", 0, "message", value=99), "marks[0].message"),
        (put("marks", 1, "message", value=2), "marks"),
        (put("marks", 0, "priority", value=4), "marks[0].priority"),
        (put("compactions", 1, "number", value=1), "compactions"),
        (put("compactions", 0, "status", value="running"), "compactions[0].status"),
        (put("compactions", 0, "course", value=2), "compactions[0].leaf"),
        (put("compactions", 0, "leaf", value=99), "compactions[0].leaf"),
        (put("compactions", 0, "parent", value=1), "compactions[0].parent"),  # its own parent
        (put("compactions", 0, "parent", value=2), "compactions[0].parent"),  # a younger one
        (put("compactions", 3, "parent", value=2), "compactions[3].parent"),  # of another course
        (put("compactions", 3, "parent", value=3), "compactions[3].parent"),  # which made no view
        (put("compactions", 0, "view", 1, "message", value=99), "compactions[0].view"),
        (put("compactions", 0, "view", 0, "covers", value=[99]), "compactions[0].view"),
        (put("compactions", 0, "view", 0, "content", value=None), "compactions[0].view"),
        (put("compactions", 0, "view", 0, "kind", value="spell"), "compactions[0].view[0].kind"),
        (put("compactions", 0, "removed", value=[99]), "compactions[0].removed"),
        (put("compactions", 0, "coverage", 0, "message", value=99), "compactions[0].coverage"),
        (put("compactions", 0, "losses", 0, "message", value=99), "compactions[0].losses"),
        (put("compactions", 0, "reward", value=float("nan")), "compactions[0].reward"),
        (put("compactions", 0, "reward", value="1"), "compactions[0].reward"),
        (put("courses", 0, "head", value=9), "courses[0].head"),
        (put("courses", 0, "head", value=4), "courses[0].head"),  # of another course
        (put("courses", 1, "head", value=4), "courses[1].head"),  # undone
        (put("view_changes", 0, "after", value=9), "view_changes[0]"),
        (put("view_changes", 0, "course", value=9), "view_changes[0].course"),
        (put("generations", 3, "sent", "view", value=9), "generations[3].sent.view"),
        # What happened.
        (put("events", 0, "run", value=99), "events[0].run refers to 99"),
        (put("events", 0, "message", value=999), "events[0].message refers to 999"),
        (put("events", 0, "course", value=9), "events[0].course refers to 9"),
        (put("events", 0, "code", value="LOOP_DETECTED"), "events[0].code must be one of"),
        (put("events", 0, "reason", value=5), "events[0].reason must be a text"),
        (put("events", 0, "seen", value=[]), "events[0].seen is a field that this version does not know"),
        (put("task", "current_phase", value="x"), "task.current_phase must be one of: planning, executing, completed"),
    ],
)
def test_a_wrong_file_is_refused_by_its_place(edit: Edit, place: str, working_dialog: Dialog) -> None:
    assert place in refusal_of(edit, working_dialog)
    assert Dialog.objects.count() == 1


@pytest.mark.parametrize("data", [None, [], "text", 3, [{"mapping": {}}], {"messages": []}, {"format": ["x"]}])
def test_what_another_program_wrote_is_refused_in_words_that_say_what_to_choose(data: Any, alice: User) -> None:
    with pytest.raises(DialogError, match="choose one that “Export as JSON” wrote"):
        import_dialog(owner=alice, data=data)


@pytest.mark.parametrize("raw", [b"{", b"\xff\xfe{}x", b"", b"[" * 200_000, b"1" * 5_000])
def test_what_is_no_json_is_refused(raw: bytes) -> None:
    with pytest.raises(DialogError, match="not JSON"):
        parse_json(raw)


def test_a_file_has_limits(full_dialog: Dialog, alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "MAX_BYTES", 10)

    data = export_json(full_dialog)
    with pytest.raises(DialogError, match=r"messages has more than 50,000 entries"):
        import_dialog(owner=alice, data=data | {"messages": data["messages"][:1] * 50_001})
    with pytest.raises(DialogError, match="larger than"):
        parse_json(b'"eleven ch"')


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (lambda data: data.update({f"x{number}": 1 for number in range(100_000)}), "the file has more than 100 fields"),
        (lambda data: data["messages"][0].update({f"x{number}": 1 for number in range(100_000)}), "messages[0] has"),
        (
            put("generations", 0, "sent", "texts", value={f"x{number}": 1 for number in range(100_000)}),
            "texts has more",
        ),
        (put("messages", value=[{"seq": "x"}] * 50_000), "messages[0].seq must be a whole number."),
        (put("texts", value=[1] * 250_000), "texts[0] must be a text."),
    ],
)
def test_of_a_hundred_thousand_mistakes_few_are_kept(
    edit: Callable[[dict[str, Any]], None], problem: str, full_dialog: Dialog
) -> None:
    data = json.loads(json.dumps(export_json(full_dialog)))
    edit(data)

    with pytest.raises(ValidationError) as refusal:
        importing.FILE.validate_python(data)
    with pytest.raises(DialogError, match=re.escape(problem)):
        importing.read_file(data)

    assert refusal.value.error_count() < 20


def test_more_reminders_than_a_dialog_may_have_are_refused_unless_they_were_removed(
    full_dialog: Dialog, alice: User
) -> None:
    add_reminder(dialog=full_dialog, content="Water the plants", author=Author.PERSON)
    data = json.loads(json.dumps(export_json(full_dialog)))
    one = data["reminders"][0] | {"removed_at": None}
    data["reminders"] = [one | {"number": number, "position": number} for number in range(1, MOST_REMINDERS + 2)]

    with pytest.raises(DialogError, match="reminders may have at most 50"):
        import_dialog(owner=alice, data=data)
    data["reminders"][7]["removed_at"] = one["created_at"]

    assert import_dialog(owner=alice, data=data).reminders.count() == MOST_REMINDERS + 1


def test_a_refusal_can_be_shown_whatever_the_file_calls_its_fields(full_dialog: Dialog, alice: User) -> None:
    with pytest.raises(DialogError) as refusal:
        import_dialog(owner=alice, data=export_json(full_dialog) | {"\ud800": 1})

    assert str(refusal.value).encode()


def test_signs_that_no_database_takes_are_made_visible(full_dialog: Dialog, alice: User) -> None:
    data = export_json(full_dialog)
    data["messages"][0]["content"] = "a\0b\ud800c"
    data["messages"][0]["parts"] = {"n\0": ["\ud800"]}

    imported = import_dialog(owner=alice, data=data)

    message = Message.objects.get(dialog=imported, seq=1)
    assert message.content == "a␀b\ufffdc"
    assert message.parts == {"n␀": ["\ufffd"]}
