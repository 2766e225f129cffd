"""What leaves as a file comes back the same, as a new dialog at rest."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User

from dialogs.common.errors import DialogError
from dialogs.models import LLM, Agent, Blob, Dialog, Message, ToolCall
from dialogs.transfer import export_json, import_dialog
from dialogs.turns.writes.messages import post_message


def through_a_file(data: dict[str, Any]) -> Any:
    return json.loads(json.dumps(data))


def without_moment(data: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key != "exported_at"}


def test_export_then_import_then_export_is_equal(working_dialog: Dialog, bob: User) -> None:
    exported = export_json(working_dialog)

    imported = import_dialog(owner=bob, data=through_a_file(exported))

    assert imported.pk != working_dialog.pk
    assert imported.owner == bob
    assert without_moment(export_json(Dialog.objects.get(pk=imported.pk))) == without_moment(exported)


def test_the_original_is_untouched(full_dialog: Dialog, alice: User) -> None:
    before = export_json(full_dialog)

    import_dialog(owner=alice, data=through_a_file(before))

    assert without_moment(export_json(Dialog.objects.get(pk=full_dialog.pk))) == without_moment(before)


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


def test_what_a_course_carried_is_found_again(working_dialog: Dialog, alice: User) -> None:
    imported = import_dialog(owner=alice, data=through_a_file(export_json(working_dialog)))

    carried = imported.courses.get(number=2).carried
    assert imported.messages.get(pk=carried["request"]).content == "Look inside."
    assert imported.questions.get(pk__in=carried["questions"]).status == "withdrawn"
    assert carried["reminders"] == [1]


def test_new_rows_belong_to_the_new_dialog_only(working_dialog: Dialog, alice: User) -> None:
    imported = import_dialog(owner=alice, data=through_a_file(export_json(working_dialog)))

    for call in ToolCall.objects.filter(message__dialog=imported):
        assert call.result_message is not None
        assert call.result_message.dialog == imported
    for prompt in imported.remediation_prompts.all():
        assert (prompt.course.dialog, prompt.message.dialog) == (imported, imported)
    assert {reminder.course.dialog for reminder in imported.reminders.all() if reminder.course} == {imported}


def test_a_file_of_the_fifth_format_is_compacted_by_itself(working_dialog: Dialog, alice: User) -> None:
    newest = through_a_file(export_json(working_dialog))
    older = {key: value for key, value in newest.items() if key not in {"compaction", "standing_rules", "own_tools"}}

    imported = import_dialog(owner=alice, data=older | {"format": "dominds.dialog/5"})

    assert (newest["compaction"], imported.compaction) == ("off", "automatic")


def test_a_file_of_the_sixth_format_has_no_rules_by_hand(working_dialog: Dialog, alice: User) -> None:
    newest = through_a_file(export_json(working_dialog))
    older = {key: value for key, value in newest.items() if key not in {"standing_rules", "own_tools"}}

    imported = import_dialog(owner=alice, data=older | {"format": "dominds.dialog/6"})

    assert (len(newest["standing_rules"]), imported.standing_rules) == (2, [])


def test_a_file_of_the_seventh_format_offers_our_tools_as_the_room_allows(working_dialog: Dialog, alice: User) -> None:
    newest = through_a_file(export_json(working_dialog))
    older = {key: value for key, value in newest.items() if key != "own_tools"}

    imported = import_dialog(owner=alice, data=older | {"format": "dominds.dialog/7"})

    assert (newest["own_tools"], imported.own_tools) == ("off", "automatic")


def test_new_messages_go_on_after_the_imported_ones(full_dialog: Dialog, alice: User) -> None:
    imported = import_dialog(owner=alice, data=export_json(full_dialog))

    assert imported.last_seq == max(Message.objects.filter(dialog=imported).values_list("seq", flat=True))


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
