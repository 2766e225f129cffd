"""What the panel says will happen next, and why."""

from __future__ import annotations

import pytest
from django.test import Client

from dialogs.compaction.reads.budget import budget
from dialogs.models import LLM, Agent, ClientConversation, Course, Dialog
from dialogs.pages.writes import set_own_tools
from dialogs.turns.reads.turns import dialog_to_drive
from tests.dialogs.compacting_builders import a_history

COMPACTED = "At ≈5,900 tokens the history is compacted."


@pytest.fixture
def small(dialog: Dialog) -> Dialog:
    """A window of 8,192 tokens, of which 819 are kept for the answer."""
    LLM.objects.update(context_length=8192, compaction="automatic", optimal_max_tokens=None, critical_max_tokens=None)
    return dialog


def told(dialog: Dialog) -> str:
    return " ".join(budget(dialog_to_drive(dialog.pk)).next)


def test_it_says_when_the_history_is_compacted_and_why_nobody_is_asked(small: Dialog) -> None:
    LLM.objects.update(tool_calling="off")

    assert told(small) == f"{COMPACTED} This model does not use tools, so it is not asked to write reminders."


def test_each_reason_for_not_asking_has_its_words(small: Dialog) -> None:
    assert told(small) == (
        f"{COMPACTED} The room is too small for tools that write reminders, so the agent is not asked for any."
    )
    set_own_tools(dialog=small, own_tools="off")
    assert told(small).endswith("switched off in this dialog, so the agent is not asked to write reminders.")


def test_who_has_all_tools_is_told_from_when_on_the_agent_is_asked(small: Dialog) -> None:
    set_own_tools(dialog=small, own_tools="on")

    assert told(small) == (
        f"{COMPACTED} That comes before the agent is asked to write reminders, at 7,372 reported tokens."
    )


def test_an_agent_that_is_reminded_first_is_asked_and_compacted_only_where_it_would_not_fit(small: Dialog) -> None:
    Agent.objects.update(when_full="remind")

    assert told(small) == (
        "The agent is reminded first: the history is compacted only above ≈7,400 tokens. "
        "Above 7,372 tokens, as the provider reports them, the agent is asked to write reminders."
    )


def test_a_large_window_is_asked_from_its_half_on(small: Dialog) -> None:
    LLM.objects.update(context_length=400_000)

    assert "Above 200,000 tokens, as the provider reports them, the agent is asked" in told(small)


def test_what_is_above_the_threshold_is_compacted_before_the_next_request(small: Dialog) -> None:
    a_history(small, pairs=80)
    LLM.objects.update(context_length=8192, compaction="automatic")

    assert told(small).startswith("The next request is above ≈5,900 tokens: the history is compacted before it.")
    Course.objects.update(guard_held=True)
    assert told(small).startswith("You undid a compaction: until you write, it is compacted only above ≈7,400 tokens.")


def test_without_a_window_and_with_compaction_off_that_is_said(small: Dialog) -> None:
    LLM.objects.update(compaction="off")
    assert told(small).startswith("Compaction is off for this LLM: what does not fit is refused.")

    LLM.objects.update(compaction="automatic", context_length=None, input_length=None)
    assert told(small).startswith("The window is unknown, so nothing is compacted by itself.")


def test_of_a_clients_conversation_nothing_is_asked(small: Dialog) -> None:
    Dialog.objects.update(is_client_driven=True)
    ClientConversation.objects.create(dialog=small, model="helper")

    assert told(small) == f"{COMPACTED} A client drives this conversation, so the agent is asked for nothing."


def test_the_panel_shows_it(as_alice: Client, small: Dialog) -> None:
    assert COMPACTED in as_alice.get(f"/dialogs/{small.pk}/budget/").content.decode()
