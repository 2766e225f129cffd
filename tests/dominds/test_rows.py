"""Rows that are made and stored without asking each of their fields are as Django makes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.db import connection, connections
from django.db.models import (
    BooleanField,
    CharField,
    DateTimeField,
    Field,
    IntegerField,
    JSONField,
    Model,
    TextField,
    UUIDField,
)
from django.test.utils import CaptureQueriesContext
from psycopg.types.json import Jsonb
from psycopg.types.numeric import Int4

from dialogs.common.threads import WarmThreads, _connected
from dialogs.models import LLM, Agent, ClientConversation, Course, Dialog, Message, PrefixNode, SearchText
from dialogs.models.message import MessageOrigin, Role
from dominds.prepared import cursor_of, database, rows_of
from dominds.rows import FEW, _column, _values, copied, insert, insert_all, new

pytestmark = pytest.mark.django_db
MODELS = [one for name in ("dialogs", "health") for one in apps.get_app_config(name).get_models()]


@pytest.mark.parametrize("kind", MODELS, ids=lambda kind: kind.__name__)
def test_a_new_row_has_the_values_that_django_gives_it(kind: type[Model]) -> None:
    made, theirs = new(kind), kind()

    for field in kind._meta.concrete_fields:
        value, other = getattr(made, field.attname), getattr(theirs, field.attname)
        assert type(value) is type(other)
        # Ids and moments are each row's own.
        assert value == other or type(other).__name__ in {"UUID", "datetime"}
        assert value is None or not isinstance(value, dict | list) or value is not getattr(new(kind), field.attname)
    assert made._state.adding
    assert made._state.db is None


def test_a_new_row_knows_what_it_refers_to_and_is_known_there(alice: User, agent: Agent, llm: LLM) -> None:
    dialog = new(Dialog, owner=alice, agent=agent, llm=llm, is_client_driven=True)
    client = new(ClientConversation, dialog=dialog)
    course = new(Course, dialog=dialog, number=1)

    assert (dialog.owner, dialog.owner_id, dialog.llm_after_id) == (alice, alice.pk, None)
    assert dialog.client is client
    assert client.pk == client.dialog_id == course.dialog_id == dialog.pk


def test_a_new_row_is_stored_as_it_is(dialog: Dialog) -> None:
    course = Course.objects.get(dialog=dialog)
    said: dict[str, Any] = {"role": Role.USER, "origin": MessageOrigin.TYPED, "content": "Hello", "parts": {"a": [1]}}
    message = new(Message, dialog=dialog, course=course, seq=77, parent=None, turn=1, **said)
    insert(message)
    insert(new(SearchText, message=message, words="hello"))

    stored = Message.objects.select_related("search_text").get(pk=message.pk)
    assert {name: getattr(stored, name) for name in said} == said
    assert (stored.dialog_id, stored.course_id, stored.parent_id) == (dialog.pk, course.pk, None)
    assert SearchText.objects.get(message=message).words == "hello"


MOMENTS = [
    datetime(2026, 11, 26, 9, 5, 7, 120_000, tzinfo=UTC),
    datetime(2026, 11, 26, 9, 5, 7, tzinfo=UTC),
    datetime(2026, 11, 26, 9, 5, 7, tzinfo=timezone(timedelta(hours=8))),
]
VALUES = {
    UUIDField: [UUID(int=2**127 + 7), "1db023d7-ca8f-460f-b25e-f7b534113d08"],
    DateTimeField: MOMENTS,
    JSONField: [{}, [], {"a": None}, {"\u4f60": [1.5, "\u597d"]}, "", 0, False, [{}]],
    CharField: ["", "a", Role.USER],
    TextField: ["\u4f60\u597d", MessageOrigin.CLIENT],
    IntegerField: [0, 7, -1, True],
    BooleanField: [True, False],
}


@pytest.mark.parametrize(("kind", "value"), [(kind, value) for kind in VALUES for value in [None, *VALUES[kind]]])
def test_a_value_is_written_as_django_writes_it(kind: type[Field[Any, Any]], value: Any) -> None:
    field = kind(name="one")
    field.set_attributes_from_name("one")
    read, plain, write = _column(field, connection.vendor, is_new=False)

    (found,) = map(_unwrapped, _values(SimpleNamespace(one=value), [(read, plain, write)], connection))  # type: ignore[arg-type]

    theirs = _unwrapped(field.get_db_prep_save(value, connection))
    assert found == theirs
    assert isinstance(found, type(theirs))


def _unwrapped(value: Any) -> Any:
    """Without what Django puts around it to tell PostgreSQL its type: two of these are never equal, or a whole number
    needs none."""
    if isinstance(value, Jsonb):
        return value.obj
    return int(value) if isinstance(value, Int4) else value


def test_a_field_that_is_not_there_is_an_error() -> None:
    with pytest.raises(TypeError, match="numer"):
        new(Course, numer=1)


def test_one_cursor_is_kept_as_long_as_its_connection() -> None:
    first = cursor_of(connection)

    assert cursor_of(connection) is first
    assert rows_of(connection, "SELECT %s", [1]) == [(1,)]
    with CaptureQueriesContext(connection) as captured:
        assert rows_of(connection, "SELECT %s", [2]) == [(2,)]
    assert len(captured) == 1
    assert cursor_of(connection) is first


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_is_opened_anew_has_another() -> None:
    first = cursor_of(connection)

    connection.close()

    assert rows_of(connection, "SELECT %s", [1]) == [(1,)]
    assert cursor_of(connection) is not first


@pytest.mark.parametrize("count", [0, 1, 2, FEW, FEW + 1])
def test_several_rows_are_stored_at_once(dialog: Dialog, django_assert_num_queries: Any, count: int) -> None:
    course = Course.objects.get(dialog=dialog)
    said = [new(Message, dialog=dialog, course=course, seq=90 + at, turn=1, role=Role.USER) for at in range(count)]
    for one in said:
        insert(one)

    with django_assert_num_queries(min(1, count)):
        insert_all(new(SearchText, message=one, words=f"word{one.seq}") for one in said)
    with django_assert_num_queries(min(1, count)):
        insert_all(new(PrefixNode, owner_id=dialog.owner_id, sha256=f"{one.seq}", message=one) for one in said)

    found = SearchText.objects.filter(message__in=said).values_list("message__seq", "words")
    assert sorted(found) == [(90 + at, f"word{90 + at}") for at in range(count)]
    assert sorted(PrefixNode.objects.values_list("sha256", flat=True)) == [f"{90 + at}" for at in range(count)]


def test_the_same_row_again_is_one_of_its_own(dialog: Dialog, django_assert_num_queries: Any) -> None:
    found = Dialog.objects.select_related("llm__provider").get(pk=dialog.pk)

    with django_assert_num_queries(0):
        again = copied(found)
        assert again == found
        assert again.llm is found.llm
        assert vars(again) | {"_state": None} == vars(found) | {"_state": None}

    again.title, again.llm_after = "Another", found.llm

    assert (found.title, found.llm_after) == (dialog.title, None)
    again.save()
    assert Dialog.objects.get(pk=dialog.pk).title == "Another"


@pytest.mark.django_db(transaction=True)
def test_a_thread_of_the_database_has_its_own_at_hand() -> None:
    def looked() -> tuple[bool, bool]:
        return database() is connections["default"], database() is database()

    threads = WarmThreads(1, name="test")
    try:
        assert threads.submit(_connected(looked)).result(5) == (True, True)
        theirs = threads.submit(_connected(database)).result(5)
    finally:
        threads.end(connections.close_all)

    assert database() is connections["default"]
    assert theirs is not connections["default"]
