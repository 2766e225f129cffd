"""What leaves as a file comes back the same, as a new dialog at rest."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User

from dialogs.common.errors import DialogError
from dialogs.driver.writes.courses import start_course
from dialogs.models import LLM, Agent, Blob, Dialog, Message, Question, ToolCall
from dialogs.models.message import MessageOrigin, Role
from dialogs.providers.base import ToolCall as AskedCall
from dialogs.transcript.writes.dialog_row import add_message, lock, save
from dialogs.transfer import export_json, import_dialog
from dialogs.turns.writes.events import log
from dialogs.turns.writes.messages import answer_question, edit_message, pause, post_message, retry
from dialogs.turns.writes.tool_calls import add_calls, add_results, close_call
from health.models import ContextEvent


def through_a_file(data: dict[str, Any]) -> Any:
    return json.loads(json.dumps(data))


def without_moment(data: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key != "exported_at"}


def test_export_then_import_then_export_is_equal_and_the_original_is_untouched(
    working_dialog: Dialog, bob: User
) -> None:
    exported = export_json(working_dialog)

    imported = import_dialog(owner=bob, data=through_a_file(exported))

    assert imported.pk != working_dialog.pk
    assert imported.owner == bob
    for dialog in (imported, working_dialog):
        assert without_moment(export_json(Dialog.objects.get(pk=dialog.pk))) == without_moment(exported)
    # New messages go on after the imported ones.
    assert imported.last_seq == max(Message.objects.filter(dialog=imported).values_list("seq", flat=True))


def test_a_dialog_that_went_on_meanwhile_is_exported_as_it_is_now(full_dialog: Dialog) -> None:
    read_before = Dialog.objects.get(pk=full_dialog.pk)
    said = post_message(dialog=full_dialog, content="And now?")

    exported = export_json(read_before)

    assert isinstance(said, Message)
    assert exported["current_leaf"] == exported["messages"][-1]["seq"] == said.seq


def test_missing_usage_is_a_word_and_never_a_number(full_dialog: Dialog) -> None:
    exported = export_json(full_dialog)

    stopped = next(entry for entry in exported["generations"] if entry["status"] == "stopped")
    assert stopped["usage"] == "unavailable"
    assert stopped["reading"]["level"] == "unknown"
    assert stopped["reading"]["context_window"] is None


def test_nothing_that_was_exported_is_empty(working_dialog: Dialog) -> None:
    """So that the test above cannot pass by losing something twice."""
    exported = export_json(working_dialog)

    assert all(exported[name] for name in exported.keys() - {"client"})
    for name in ("courses", "reminders", "calls", "prompts", "runs", "marks", "compactions", "view_changes", "events"):
        entries = exported[name]
        # A result stands in its message.
        assert all(any(entry[field] for entry in entries) for field in entries[0].keys() - {"result"})


def test_new_rows_belong_to_the_new_dialog_and_what_a_course_carried_is_found_again(
    working_dialog: Dialog, alice: User
) -> None:
    imported = import_dialog(owner=alice, data=through_a_file(export_json(working_dialog)))

    carried = imported.courses.get(number=2).carried
    assert imported.messages.get(pk=carried["request"]).content == "Look inside."
    assert imported.questions.get(pk__in=carried["questions"]).status == "withdrawn"
    assert carried["reminders"] == [1]
    for call in ToolCall.objects.filter(message__dialog=imported):
        assert call.result_message is not None
        assert call.result_message.dialog == imported
    for prompt in imported.remediation_prompts.all():
        assert (prompt.course.dialog, prompt.message.dialog) == (imported, imported)
    assert {reminder.course.dialog for reminder in imported.reminders.all() if reminder.course} == {imported}


@pytest.mark.parametrize(
    ("number", "before"),
    [(5, ("compaction", "standing_rules", "own_tools")), (6, ("standing_rules", "own_tools")), (7, ("own_tools",))],
)
def test_what_a_file_of_an_older_format_does_not_tell_is_as_in_a_new_dialog(
    working_dialog: Dialog, alice: User, number: int, before: tuple[str, ...]
) -> None:
    newest = through_a_file(export_json(working_dialog))
    older = {key: value for key, value in newest.items() if key not in before}

    imported = import_dialog(owner=alice, data=older | {"format": f"dominds.dialog/{number}"})

    new = {"compaction": "automatic", "standing_rules": [], "own_tools": "automatic"}
    assert {name: getattr(imported, name) for name in before} == {name: new[name] for name in before}
    assert (newest["compaction"], len(newest["standing_rules"]), newest["own_tools"]) == ("off", 2, "off")


def test_every_text_that_was_sent_travels_along_once(working_dialog: Dialog, alice: User) -> None:
    exported = export_json(working_dialog)

    sent = exported["generations"][-1]["sent"]["texts"]
    assert {key: exported["texts"][index] for key, index in sent.items()} == {
        "instructions": "You help.",
        "taskdoc": "The taskdoc.",
        "reminders": "The reminders.",
        "tools": "The tools.",
        "notice": "The notice.",
        "urge": "The urge.",
        "task": "The task.",
        "changed": "The changed.",
    }
    assert len(exported["texts"]) == 8


def test_a_text_that_nothing_refers_to_is_not_kept(full_dialog: Dialog, alice: User) -> None:
    data = through_a_file(export_json(full_dialog))
    data["texts"].append("Nobody would erase it.")

    import_dialog(owner=alice, data=data)

    assert set(Blob.objects.values_list("content", flat=True)) == {"You help."}


def test_an_unknown_agent_is_replaced_by_the_one_chosen(full_dialog: Dialog, alice: User, llm: LLM) -> None:
    chosen = Agent.objects.create(name="Zoe", slug="zoe", llm=llm)
    data = export_json(full_dialog) | {"agent": "nobody", "llm": "no/where"}

    imported = import_dialog(owner=alice, data=data, agent=chosen)

    assert (imported.agent, imported.llm) == (chosen, llm)


def test_without_any_agent_the_import_says_so(full_dialog: Dialog, alice: User) -> None:
    Agent.objects.update(enabled=False)

    with pytest.raises(DialogError, match="no agent"):
        import_dialog(owner=alice, data=export_json(full_dialog))

    assert Dialog.objects.count() == 1


# Events of a dialog's context in its file: told as history, and of no consequence where they are imported.


def copy_of(dialog: Dialog, owner: User) -> Dialog:
    return import_dialog(owner=owner, data=through_a_file(export_json(dialog)))


def test_an_event_is_told_with_where_and_in_which_compaction_it_happened(working_dialog: Dialog, bob: User) -> None:
    copy = copy_of(working_dialog, bob)

    event = ContextEvent.objects.get(dialog=copy, code="TOKEN_LIMIT_EXCEEDED")
    message = copy.messages.get(content="Course 2 begins.")
    assert event.run is not None
    assert (event.run.dialog, event.owner, event.llm) == (copy, bob, working_dialog.llm)
    assert (event.facts["message"], event.facts["course"]) == (message.pk, message.course_id)
    assert (event.estimated, event.limit) == (5200, 5000)


def test_imported_events_are_nobodys_over_hits(dialog: Dialog, agent: Agent, alice: User) -> None:
    log("OVER_HIT", dialog, estimated=6000, limit=5000, message=0, escalated="offer")

    copy = copy_of(dialog, alice)

    event = ContextEvent.objects.get(dialog=copy)
    assert event.agent is None
    assert event.facts == {}
    assert ContextEvent.objects.filter(agent=agent).count() == 1


def test_a_loop_that_was_seen_stays_where_it_was_seen(dialog: Dialog, alice: User) -> None:
    log("LOOP_DETECTED", dialog, seen=[], through=0, course=None, paused=True)

    assert not ContextEvent.objects.filter(dialog=copy_of(dialog, alice)).exists()


# What the services themselves write is always a file that can be read back.


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
