"""Prepared queries find what Django finds, and rows are stored and changed as Django does it."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.db.models import BigIntegerField, F, Model, QuerySet, TextField, UUIDField
from django.db.models.functions import Upper
from pytest_django import DjangoAssertNumQueries

from dialogs.models import LLM, Dialog, Generation, Message, PrefixNode, Provider, ToolCall
from dialogs.turns.writes.messages import post_message
from dominds.prepared import Many, cached_reads, prepared, prepared_update
from dominds.rows import insert, insert_all, insert_or_ignore, update

pytestmark = pytest.mark.django_db
JOINED = ("agent", "llm__provider", "llm__bounds", "current_leaf__course__head_run")


@prepared(UUIDField(), BigIntegerField())
def joined(dialog_id: Any, least: Any) -> QuerySet[Dialog]:
    return Dialog.objects.select_related(*JOINED).filter(pk=dialog_id, wake_seq__gte=least).order_by()


@prepared(TextField())
def contents(content: Any) -> QuerySet[Message, Any]:
    return Message.objects.filter(content=content).values_list("content", "dialog_id", "parts")


@prepared(UUIDField())
def without_titles(dialog_id: Any) -> QuerySet[Dialog]:
    return Dialog.objects.filter(pk=dialog_id).defer("title")


@prepared(Many(BigIntegerField()))
def among(ids: Any) -> QuerySet[Message, Any]:
    return Message.objects.filter(pk__in=ids).annotate(said=Upper("content")).order_by("seq")


@prepared(Many(UUIDField()))
def titles_of(dialog_ids: Any) -> QuerySet[Dialog, Any]:
    return Dialog.objects.filter(pk__in=dialog_ids).values_list("title")


@prepared_update(UUIDField(), BigIntegerField())
def woken(dialog_id: Any, wake_seq: Any) -> tuple[QuerySet[Dialog], dict[str, Any]]:
    rows = Dialog.objects.filter(pk=dialog_id, wake_seq=wake_seq)
    return rows, {"handled_seq": wake_seq, "lease_until": None, "version": F("version") + 1}


def told(row: Model) -> dict[str, Any]:
    return {name: value for name, value in vars(row).items() if name != "_state"}


@pytest.fixture
def asked(dialog: Dialog) -> Dialog:
    post_message(dialog=dialog, content="Hello, 世界")
    return Dialog.objects.get(pk=dialog.pk)


def test_a_row_is_found_as_django_finds_it(asked: Dialog) -> None:
    by_django = Dialog.objects.select_related(*JOINED).get(pk=asked.pk)

    found = joined.first(asked.pk, 0)

    assert found is not None
    assert found == by_django
    assert told(found) == told(by_django)


def test_what_a_row_refers_to_comes_with_it(asked: Dialog, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    by_django = Dialog.objects.select_related(*JOINED).get(pk=asked.pk)
    found = joined.first(asked.pk, 0)

    assert found is not None
    assert found.current_leaf is not None
    assert by_django.current_leaf is not None
    with django_assert_num_queries(0):
        assert told(found.llm.provider) == told(by_django.llm.provider)
        assert told(found.current_leaf.course) == told(by_django.current_leaf.course)
        assert found.current_leaf.course.head_run is None
        with pytest.raises(LLM.bounds.RelatedObjectDoesNotExist):
            _ = found.llm.bounds


def test_other_values_find_other_rows(asked: Dialog) -> None:
    assert joined(asked.pk, 1) == [asked]
    assert joined(asked.pk, 1000) == []


def test_where_nothing_is_written_the_same_is_asked_once(
    asked: Dialog, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with cached_reads(), django_assert_num_queries(2):
        first, again, other = contents("Hello, 世界"), contents("Hello, 世界"), contents("Nobody said this.")
    Message.objects.update(content="Changed")

    assert first == again == [("Hello, 世界", asked.pk, {})]
    assert other == contents("Hello, 世界") == []


@pytest.mark.parametrize("count", [0, 1, 3])
def test_any_number_of_values_is_looked_for(asked: Dialog, count: int) -> None:
    for _number in range(3):
        post_message(dialog=asked, content="More")
    ids = list(Message.objects.order_by("seq").values_list("pk", flat=True))[:count]

    assert [message.pk for message in among([*ids, 0])] == ids


def test_values_of_many_are_written_as_their_field_says(asked: Dialog) -> None:
    assert titles_of([asked.pk]) == [(asked.title,)]


def test_what_is_asked_for_beside_a_row_comes_with_it(asked: Dialog) -> None:
    assert [getattr(message, "said", "") for message in among([asked.current_leaf_id])] == ["HELLO, 世界"]


def test_a_column_that_was_left_out_is_read_when_it_is_looked_at(asked: Dialog) -> None:
    found = without_titles.first(asked.pk)

    assert found is not None
    assert "title" not in vars(found)
    assert found.title == asked.title


def test_a_row_that_was_found_can_be_saved(asked: Dialog) -> None:
    found = joined.first(asked.pk, 0)
    assert found is not None

    found.title = "Another"
    found.save()

    assert Dialog.objects.get(pk=asked.pk).title == "Another"


def test_only_rows_that_are_as_they_were_said_to_be_are_changed(asked: Dialog) -> None:
    assert woken(asked.pk, asked.wake_seq + 1) == 0
    assert woken(asked.pk, asked.wake_seq) == 1

    stored = Dialog.objects.get(pk=asked.pk)
    assert (stored.handled_seq, stored.version) == (asked.wake_seq, asked.version + 1)


def test_what_is_there_already_is_not_stored_twice(asked: Dialog) -> None:
    rows = [PrefixNode(owner=asked.owner, sha256="a" * 64, message=asked.current_leaf) for _each in range(2)]

    for row in rows:
        insert_or_ignore(row)

    assert list(PrefixNode.objects.values_list("pk", flat=True)) == [rows[0].pk]
    assert rows[1].pk is None


def test_a_row_is_stored_whole(asked: Dialog) -> None:
    leaf = asked.current_leaf
    assert leaf is not None
    row = Generation(
        dialog=asked,
        course=leaf.course,
        number=7,
        turn=1,
        llm=asked.llm,
        llm_name="x",
        prompt_leaf=leaf,
        fencing_token=3,
        manifest={"messages": [leaf.pk], "options": {"a": None}},
    )

    insert(row)

    assert row.pk
    stored = Generation.objects.get(pk=row.pk)
    assert {**told(row), "started_at": stored.started_at} == {
        name: value for name, value in told(stored).items() if not name.endswith("_cache")
    }
    assert stored.started_at == row.started_at


@pytest.mark.parametrize("count", [0, 1, 20])
def test_many_rows_are_stored_in_their_order(asked: Dialog, count: int) -> None:
    leaf = asked.current_leaf
    assert leaf is not None
    rows = [ToolCall(message=leaf, position=number, call_id=str(number), name="look") for number in range(count)]

    insert_all(rows)

    assert list(ToolCall.objects.values_list("pk", "call_id").order_by("pk")) == [(one.pk, one.call_id) for one in rows]


def test_only_the_named_fields_are_changed(asked: Dialog) -> None:
    asked.title, asked.taskdoc = "New", "Nobody stores this"

    update(asked, "title")

    stored = Dialog.objects.get(pk=asked.pk)
    assert (stored.title, stored.taskdoc) == ("New", "")


def test_a_reference_is_changed_by_its_name(asked: Dialog) -> None:
    provider = Provider.objects.create(name="other", kind="openai", base_url="http://127.0.0.1:9/v1")
    asked.llm = LLM.objects.create(provider=provider, model_id="other")

    update(asked, "llm")

    assert Dialog.objects.get(pk=asked.pk).llm.model_id == "other"


@pytest.mark.skipif(connection.vendor != "postgresql", reason="of statements that PostgreSQL keeps")
def test_a_query_for_many_is_soon_planned_no_more(asked: Dialog) -> None:
    with connection.cursor() as cursor:
        for _time in range(10):
            among([asked.current_leaf_id])
        cursor.execute("SELECT custom_plans, generic_plans FROM pg_prepared_statements WHERE statement LIKE '%UPPER%'")
        planned_anew, planned_once = cursor.fetchone()

    assert planned_anew <= 5
    assert planned_once >= 4
