"""What leaves as a file comes back the same, as a new dialog at rest."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User

from dialogs.errors import DialogError
from dialogs.models import LLM, Agent, Dialog, Generation, Message
from dialogs.transfer import export_json, import_dialog


def through_a_file(data: dict[str, Any]) -> Any:
    return json.loads(json.dumps(data))


def without_moment(data: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key != "exported_at"}


def test_export_then_import_then_export_is_equal(full_dialog: Dialog, bob: User) -> None:
    exported = export_json(full_dialog)

    imported = import_dialog(owner=bob, data=through_a_file(exported))

    assert imported.pk != full_dialog.pk
    assert imported.owner == bob
    assert without_moment(export_json(Dialog.objects.get(pk=imported.pk))) == without_moment(exported)


def test_the_original_is_untouched(full_dialog: Dialog, alice: User) -> None:
    before = export_json(full_dialog)

    import_dialog(owner=alice, data=through_a_file(before))

    assert without_moment(export_json(Dialog.objects.get(pk=full_dialog.pk))) == without_moment(before)


def test_missing_usage_is_a_word_and_never_a_number(full_dialog: Dialog) -> None:
    exported = export_json(full_dialog)

    stopped = next(entry for entry in exported["generations"] if entry["status"] == "stopped")
    assert stopped["usage"] == "unavailable"
    assert stopped["reading"]["level"] == "unknown"
    assert stopped["reading"]["context_window"] is None


def test_an_imported_dialog_is_at_rest_even_if_it_was_being_answered(full_dialog: Dialog, alice: User) -> None:
    Generation.objects.filter(status="stopped").update(status="running")
    data = export_json(full_dialog)

    imported = import_dialog(owner=alice, data=through_a_file(data))

    assert not imported.is_busy
    assert not imported.answer_due
    assert set(imported.generations.values_list("status", flat=True)) == {"failed", "finished", "interrupted"}


def test_new_messages_go_on_after_the_imported_ones(full_dialog: Dialog, alice: User) -> None:
    imported = import_dialog(owner=alice, data=export_json(full_dialog))

    assert imported.last_seq == max(Message.objects.filter(dialog=imported).values_list("seq", flat=True))


def test_the_instructions_that_were_sent_travel_along(full_dialog: Dialog, alice: User) -> None:
    exported = export_json(full_dialog)

    assert {entry["sent"]["instructions"] for entry in exported["generations"]} == {"You help."}


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
