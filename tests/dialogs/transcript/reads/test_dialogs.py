"""Whose dialogs a person sees, how a search finds them, and which LLM's limits the meter meets."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.utils import timezone

from dialogs.models import Agent, Dialog
from dialogs.pages.writes import archive_dialog, create_dialog, rename_dialog, trash_dialog
from dialogs.transcript.reads.dialogs import SHELVES, list_dialogs, owned_dialog
from dialogs.turns.writes.messages import post_message


def titles(user: User, **asked: Any) -> list[str]:
    return [dialog.title for dialog in list_dialogs(user=user, **asked)]


@pytest.fixture
def named(alice: User, agent: Agent) -> Any:
    """Makes dialogs of Alice's by their names."""
    return lambda title: rename_dialog(dialog=create_dialog(owner=alice, agent=agent), title=title)


def test_a_foreign_dialog_is_as_missing_as_one_that_never_was(bob: User, sam: User, dialog: Dialog) -> None:
    for user, dialog_id in [(bob, dialog.pk), (sam, dialog.pk), (AnonymousUser(), dialog.pk), (bob, uuid4())]:
        with pytest.raises(Dialog.DoesNotExist):
            owned_dialog(user=user, dialog_id=dialog_id)


def test_everything_a_page_needs_of_a_dialog_comes_in_one_query(
    alice: User, dialog: Dialog, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(1):
        found = owned_dialog(user=alice, dialog_id=dialog.pk)
        assert (found.agent.name, found.llm.slug, found.current_leaf) == ("Helper", "scripted/tiny", None)


def test_a_dialog_lies_on_one_shelf_and_what_a_client_drives_on_another_too(alice: User, named: Any) -> None:
    named("at hand")
    Dialog.objects.filter(pk=named("driven").pk).update(is_client_driven=True)
    archive_dialog(dialog=named("put away"))
    trash_dialog(dialog=archive_dialog(dialog=named("thrown away")))

    assert {shelf: titles(alice, state=shelf) for shelf in SHELVES} == {
        "active": ["driven", "at hand"],
        "clients": ["driven"],
        "archived": ["put away"],
        "trash": ["thrown away"],
    }


def test_the_newest_activity_comes_first(alice: User, named: Any) -> None:
    old, _new = named("old"), named("new")
    assert titles(alice) == ["new", "old"]

    Dialog.objects.filter(pk=old.pk).update(active_at=timezone.now() + timedelta(minutes=1))

    assert titles(alice) == ["old", "new"]


@pytest.mark.parametrize(
    "search", ["orchard", "ORCHARD", "walnut orchard", " \t\n", "坚果", "5%", "a_b", "o\0rchard", "waLNÚt"]
)
def test_a_search_looks_into_titles_and_messages(alice: User, named: Any, search: str) -> None:
    post_message(dialog=named("Orchard"), content="A walnut tree. 但是奶奶对坚果过敏。 5% of a_b")

    assert titles(alice, search=search) == ["Orchard"]


@pytest.mark.parametrize("search", ["walnut cherry", "%", "_", "'", '"; DROP TABLE dialogs_dialog; --', "\\"])
def test_every_word_must_occur_as_it_stands(alice: User, named: Any, search: str) -> None:
    post_message(dialog=named("Orchard"), content="A walnut tree.")

    assert titles(alice, search=search) == []


def test_a_dialog_is_found_once_however_often_it_says_a_word(alice: User, named: Any) -> None:
    dialog = named("Orchard")
    post_message(dialog=dialog, content="Orchard")
    post_message(dialog=dialog, content="Orchard, orchard")

    assert titles(alice, search="orchard") == ["Orchard"]
