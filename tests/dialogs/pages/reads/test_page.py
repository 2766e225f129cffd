"""What a dialog's page is made of, at a price that does not grow, and the LLMs that it offers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dialogs.agents.writes import add_reminder, remove_reminder
from dialogs.models import LLM, Dialog, Reminder
from dialogs.models.reminder import Author
from dialogs.pages.reads.page import SHOWN_REMOVED, choosable_llms, kept_reminders, removed_reminders


def test_only_llms_that_can_answer_are_offered(llm: LLM) -> None:
    LLM.objects.create(provider=llm.provider, model_id="off", enabled=False)
    assert choosable_llms() == [llm]

    llm.provider.enabled = False
    llm.provider.save()

    assert choosable_llms() == []


def test_a_provider_without_its_key_offers_nothing(llm: LLM, monkeypatch: Any) -> None:
    monkeypatch.delenv("SCRIPTED_KEY", raising=False)
    llm.provider.api_key_env = "SCRIPTED_KEY"
    llm.provider.save()
    assert choosable_llms() == []

    monkeypatch.setenv("SCRIPTED_KEY", "k")
    assert choosable_llms() == [llm]


# Which reminders are read, and in which order.


def note(dialog: Dialog, count: int = 1) -> None:
    for number in range(count):
        add_reminder(dialog=dialog, content=f"Note {number}", author=Author.PERSON)


def numbers(reminders: list[Reminder]) -> list[int]:
    return [reminder.number for reminder in reminders]


def test_removed_ones_come_apart_the_last_removed_first(dialog: Dialog) -> None:
    note(dialog, 4)
    for number in (3, 1):
        remove_reminder(dialog=dialog, number=number)

    assert numbers(kept_reminders(dialog.pk)) == [2, 4]
    assert numbers(removed_reminders(dialog.pk)) == [1, 3]


def test_a_long_past_does_not_lengthen_the_list_of_removed_ones(dialog: Dialog) -> None:
    for number in range(1, SHOWN_REMOVED + 3):
        note(dialog)
        remove_reminder(dialog=dialog, number=number)

    assert numbers(removed_reminders(dialog.pk)) == list(range(SHOWN_REMOVED + 2, 2, -1))


@pytest.mark.parametrize("read", [kept_reminders, removed_reminders])
def test_only_this_dialogs_reminders_are_read(
    dialog: Dialog, read: Callable[[Any], list[Reminder]], django_assert_num_queries: Any
) -> None:
    other = Dialog.objects.create(owner=dialog.owner, agent=dialog.agent, llm=dialog.llm, active_at=dialog.active_at)
    other.courses.create(number=1)
    for each in (dialog, other):
        note(each, 2)
        remove_reminder(dialog=each, number=1)

    with django_assert_num_queries(1):
        found = read(dialog.pk)
        assert [(reminder.dialog_id, reminder.course and reminder.course.number) for reminder in found] == [
            (dialog.pk, 1)
        ]
