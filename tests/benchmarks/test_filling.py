"""A database filled with copies of one dialog is as one that was filled by people."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from benchmarks.filling import fill
from dialogs.models import Agent, Dialog, Generation, Message, PrefixNode, SearchText
from dialogs.transcript.reads.path import course_branch
from dialogs.turns.writes.messages import post_message
from health.models import HealthReading

pytestmark = pytest.mark.django_db


@pytest.fixture
def filled(agent: Agent) -> Dialog:
    owners = [User.objects.create_user(name) for name in ("one", "other")]
    fill(owners=owners, agent=agent, dialogs=4, messages=6)
    return Dialog.objects.get(title="Filled 3")


def test_a_copy_s_messages_are_its_own_and_stand_below_each_other(filled: Dialog) -> None:
    assert [message.seq for message in course_branch(filled.current_leaf)] == [1, 2, 3, 4, 5, 6]
    assert {message.dialog_id for message in course_branch(filled.current_leaf)} == {filled.pk}


def test_copies_go_to_the_owners_in_turn(filled: Dialog) -> None:
    assert filled.owner.username == "other"


def test_every_message_can_be_searched_and_every_answer_was_read(filled: Dialog) -> None:
    of_it = Message.objects.filter(dialog=filled)
    assert SearchText.objects.filter(message__in=of_it).count() == 6
    assert PrefixNode.objects.filter(message__in=of_it).count() == 6
    assert Generation.objects.filter(dialog=filled, message__in=of_it, prompt_leaf__in=of_it).count() == 3
    assert HealthReading.objects.filter(generation__dialog=filled).count() == 3


@pytest.mark.usefixtures("filled")
def test_its_owner_can_go_on_writing_in_a_copy_that_no_client_drives() -> None:
    copy = Dialog.objects.get(title="Filled 1", is_client_driven=False)
    post_message(dialog=copy, content="Go on.")
    copy.refresh_from_db()
    assert [message.seq for message in course_branch(copy.current_leaf)] == [1, 2, 3, 4, 5, 6, 7]
