"""What a person does to a dialog as a whole: begin, name, change the LLM, put away, throw away."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from dialogs.models import LLM, Agent, Dialog, QueuedMessage
from dialogs.pages import writes as service
from dialogs.turns.reads.turns import due_dialogs
from dialogs.turns.writes.messages import post_message
from tests.builders import a_reading


@pytest.fixture
def larger(llm: LLM) -> LLM:
    return LLM.objects.create(provider=llm.provider, model_id="large", context_length=128_000)


def test_a_new_dialog_begins_empty_with_its_agents_llm(alice: User, agent: Agent) -> None:
    dialog = service.create_dialog(owner=alice, agent=agent)

    assert (dialog.owner, dialog.agent, dialog.llm, dialog.title) == (alice, agent, agent.llm, "")
    assert list(dialog.courses.values_list("number", "opened_by")) == [(1, "start")]
    assert not dialog.is_busy


def test_a_dialog_keeps_its_llm_when_the_agent_gets_another(dialog: Dialog, agent: Agent, larger: LLM) -> None:
    before = dialog.llm

    agent.llm = larger
    agent.save()

    dialog.refresh_from_db()
    assert dialog.llm == before


@pytest.mark.parametrize(
    ("typed", "title"),
    [
        ("  two \n lines\t ", "two lines"),
        ("n\0ul", "nul"),
        ("half \ud83d", "half \ufffd"),
        ("x" * 500, "x" * 200),
        ("果园 <b>👩‍🌾</b>", "果园 <b>👩‍🌾</b>"),
    ],
)
def test_a_name_is_one_line_that_fits(dialog: Dialog, typed: str, title: str) -> None:
    service.rename_dialog(dialog=dialog, title=typed)

    dialog.refresh_from_db()
    assert dialog.title == title


def test_another_llm_leaves_past_readings_and_a_running_turn_as_they_were(dialog: Dialog, larger: LLM) -> None:
    post_message(dialog=dialog, content="Hello")
    reading = a_reading(dialog, 950)
    post_message(dialog=dialog, content="And now?")

    service.change_llm(dialog=dialog, llm=larger)

    reading.refresh_from_db()
    assert (reading.level, reading.context_window) == ("critical", 1000)
    dialog.refresh_from_db()
    assert (dialog.llm, dialog.is_busy, dialog.stop_requested) == (larger, True, False)


def test_an_archived_dialog_comes_out_of_the_trash_archived(dialog: Dialog) -> None:
    service.archive_dialog(dialog=dialog)
    service.trash_dialog(dialog=dialog)

    service.restore_dialog(dialog=dialog)

    dialog.refresh_from_db()
    assert dialog.trashed_at is None
    assert dialog.archived_at is not None


def test_throwing_away_stops_a_running_answer(dialog: Dialog) -> None:
    post_message(dialog=dialog, content="Hello")
    Dialog.objects.update(lease_until=timezone.now() + timedelta(seconds=30))

    service.trash_dialog(dialog=dialog)

    dialog.refresh_from_db()
    assert dialog.stop_requested


def test_what_waited_in_the_trash_is_due_again(dialog: Dialog) -> None:
    post_message(dialog=dialog, content="Hello")
    post_message(dialog=dialog, content="And")
    service.trash_dialog(dialog=dialog)
    Dialog.objects.update(handled_seq=2, answer_due=False)
    assert due_dialogs() == []

    service.restore_dialog(dialog=dialog)

    assert due_dialogs() == [dialog.pk]
    assert QueuedMessage.objects.filter(dialog=dialog).exists()


def a_name(dialog: Dialog) -> Any:
    return service.rename_dialog(dialog=dialog, title="Orchard")


def the_same_llm(dialog: Dialog) -> Any:
    return service.change_llm(dialog=dialog, llm=dialog.llm)


@pytest.mark.parametrize("change", [a_name, the_same_llm])
def test_a_stale_copy_undoes_nothing(dialog: Dialog, change: Callable[[Dialog], Any]) -> None:
    stale = Dialog.objects.get(pk=dialog.pk)
    post_message(dialog=dialog, content="Hello")

    change(stale)

    dialog.refresh_from_db()
    assert dialog.answer_due
    assert dialog.current_leaf is not None


@pytest.mark.parametrize(
    "change",
    [
        a_name,
        the_same_llm,
        lambda dialog: service.archive_dialog(dialog=dialog),
        lambda dialog: service.unarchive_dialog(dialog=dialog),
        lambda dialog: service.trash_dialog(dialog=dialog),
        lambda dialog: service.restore_dialog(dialog=dialog),
    ],
    ids=["rename", "llm", "archive", "unarchive", "trash", "restore"],
)
def test_every_change_raises_the_version(dialog: Dialog, change: Callable[[Dialog], Any]) -> None:
    change(dialog)

    assert Dialog.objects.get(pk=dialog.pk).version == dialog.version + 1
