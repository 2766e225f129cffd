"""Erasing: what goes, what stays, and who may not be hurt by it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from dialogs.common.errors import DialogError
from dialogs.context.border import chat_request, read_context
from dialogs.context.estimate import Sizing
from dialogs.driver.calls import _sent
from dialogs.models import (
    AutonomousRun,
    Blob,
    Course,
    Dialog,
    Generation,
    Message,
    Question,
    RemediationPrompt,
    Reminder,
    ToolCall,
)
from dialogs.transcript.writes.dialog_row import BLOB_KEYS, _erase_if_still_due, empty_trash, erase_dialog
from health.models import HealthReading
from tests.builders import keep_blob


def add_generation(dialog: Dialog, *, blob: str, key: str = "instructions") -> Generation:
    """A question and the generation that answers it, with a text stored under this hash."""
    course = dialog.courses.get()
    question = Message.objects.create(
        dialog=dialog, course=course, seq=1, turn=1, role="user", origin="typed", content="Hello"
    )
    Blob.objects.get_or_create(sha256=blob, defaults={"content": "You help."})
    generation = Generation.objects.create(
        dialog=dialog, course=course, number=1, turn=1, llm_name="x", prompt_leaf=question, fencing_token=1,
        manifest={"messages": [question.pk], key: blob, "options": {}},
    )  # fmt: skip
    HealthReading.objects.create(generation=generation, level="unknown")
    return generation


def add_work(dialog: Dialog) -> None:
    """A row in every table that holds what an agent did or was asked to do."""
    said = dialog.messages.get()
    course = said.course
    result = Message.objects.create(
        dialog=dialog, course=course, seq=2, turn=1, role="tool", origin="tool", content="Yes.", parent=said
    )
    call = ToolCall.objects.create(message=said, position=0, call_id="c1", name="ask_human", result_message=result)
    Question.objects.create(dialog=dialog, tool_call=call, text="Really?")
    Reminder.objects.create(dialog=dialog, number=1, position=1, content="Water it.", author="agent", course=course)
    RemediationPrompt.objects.create(dialog=dialog, course=course, message=said, level="caution")
    AutonomousRun.objects.create(dialog=dialog, goal="A garden", max_generations=3, first_course=1)


def trash(dialog: Dialog, *, days_ago: float = 0) -> None:
    dialog.trashed_at = timezone.now() - timedelta(days=days_ago)
    dialog.save()


def twin(dialog: Dialog) -> Dialog:
    other = Dialog.objects.create(
        owner=dialog.owner, agent=dialog.agent, llm=dialog.llm, active_at=timezone.now(), title="Twin"
    )
    other.courses.create(number=1)
    return other


def test_erasing_leaves_nothing_of_the_dialog(dialog: Dialog) -> None:
    add_generation(dialog, blob="a" * 64)
    trash(dialog)

    erase_dialog(dialog=dialog)

    for table in (Dialog, Message, Generation, HealthReading, Blob):
        assert not table.objects.exists(), table


def test_erasing_leaves_nothing_of_what_the_agent_did(dialog: Dialog) -> None:
    add_generation(dialog, blob="a" * 64)
    add_work(dialog)
    trash(dialog)

    erase_dialog(dialog=dialog)

    for table in (Course, Reminder, ToolCall, Question, RemediationPrompt, AutonomousRun):
        assert not table.objects.exists(), table


def test_every_text_that_a_generation_keeps_is_known_to_who_erases_and_exports(dialog: Dialog) -> None:
    context = read_context(dialog, ())

    kept = _sent(Sizing(context, []), chat_request(context)).texts

    assert set(kept) == set(BLOB_KEYS)


def test_every_text_that_was_sent_is_erased(dialog: Dialog) -> None:
    generation = add_generation(dialog, blob="0" * 64)
    generation.manifest = {"messages": [], "options": {}, **{key: keep_blob(f"The {key}.") for key in BLOB_KEYS}}
    generation.save()
    Blob.objects.filter(pk="0" * 64).delete()
    trash(dialog)

    erase_dialog(dialog=dialog)

    assert not Blob.objects.exists()


@pytest.mark.parametrize("key", BLOB_KEYS)
def test_a_blob_that_another_dialog_was_sent_stays(key: str, dialog: Dialog) -> None:
    add_generation(dialog, blob="a" * 64)
    add_generation(twin(dialog), blob="a" * 64, key=key)
    trash(dialog)

    erase_dialog(dialog=dialog)

    assert Blob.objects.filter(pk="a" * 64).exists()


def test_the_agent_and_its_llm_stay(dialog: Dialog) -> None:
    trash(dialog)

    erase_dialog(dialog=dialog)

    dialog.agent.refresh_from_db()
    dialog.llm.refresh_from_db()


def test_a_dialog_outside_the_trash_cannot_be_erased(dialog: Dialog) -> None:
    with pytest.raises(DialogError, match="in the trash"):
        erase_dialog(dialog=dialog)

    assert Dialog.objects.filter(pk=dialog.pk).exists()


def test_only_what_has_been_in_the_trash_long_enough_is_emptied(dialog: Dialog) -> None:
    fresh, kept = twin(dialog), twin(dialog)
    trash(dialog, days_ago=31)
    trash(fresh, days_ago=29)

    erased = empty_trash(older_than_days=30)

    assert erased == 1
    assert set(Dialog.objects.all()) == {fresh, kept}


def test_a_dialog_restored_at_the_last_moment_is_kept(dialog: Dialog) -> None:
    trash(dialog, days_ago=31)
    Dialog.objects.update(trashed_at=None)

    assert not _erase_if_still_due(dialog.pk, timezone.now())
    assert Dialog.objects.filter(pk=dialog.pk).exists()
