"""What a look at a live page costs the web process: counted, since milliseconds depend on the machine."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models.sql.compiler import SQLCompiler
from django.http import QueryDict
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dialogs.models import Dialog
from dialogs.pages.live_view import PageDiff, Rendering, _render
from dialogs.pages.views.lists import ListQuery, list_context, sidebar
from dialogs.turns.writes.messages import post_message
from tests.builders import a_generation, a_reading

pytestmark = pytest.mark.django_db
# Of a page whose rows are read already: each part reads what it shows.
MOST_STATEMENTS = 14


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The queries that Django puts into words."""
    found: list[object] = []
    as_sql = SQLCompiler.as_sql

    def noted(self: SQLCompiler, *given: object, **named: object) -> object:
        found.append(self.query)
        return as_sql(self, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(SQLCompiler, "as_sql", noted)
    return found


def look(dialog: Dialog) -> Rendering:
    rendering = _render(dialog.pk, "en", 100)
    assert rendering is not None
    return rendering


def answered(dialog: Dialog) -> None:
    post_message(dialog=dialog, content="Hello")
    a_reading(dialog, 900)


def test_a_second_look_puts_no_query_into_words(dialog: Dialog, compiled: list[object]) -> None:
    answered(dialog)
    screen = PageDiff()
    screen.whole(look(dialog))
    answered(dialog)
    screen.update(look(dialog))
    answered(dialog)
    compiled.clear()

    with CaptureQueriesContext(connection) as queries:
        screen.update(look(dialog))

    assert compiled == []
    assert len(queries) <= MOST_STATEMENTS


def test_a_second_list_and_sidebar_put_no_query_into_words(alice: User, dialog: Dialog, compiled: list[object]) -> None:
    answered(dialog)
    for _time in range(2):
        compiled.clear()
        listed, beside = list_context(alice, ListQuery.of(QueryDict()))["items"], sidebar(alice)

    assert compiled == []
    assert [item.dialog for item in listed] == [item.dialog for item in beside] == [dialog]
    assert {item.meter.prompt_tokens for item in (*listed, *beside)} == {900}


def test_a_second_page_puts_little_more_into_words_than_whose_it_is(
    as_alice: Client, dialog: Dialog, compiled: list[object]
) -> None:
    answered(dialog)
    for _time in range(2):
        compiled.clear()
        as_alice.get(f"/dialogs/{dialog.pk}/")

    assert len(compiled) == 1


def test_a_look_costs_the_same_statements_however_much_was_said(dialog: Dialog) -> None:
    counts = []
    for _turn in range(5):
        answered(dialog)
        with CaptureQueriesContext(connection) as queries:
            look(dialog)
        counts.append(len(queries))

    assert len(set(counts[1:])) == 1, counts


def test_an_answer_that_begins_reads_no_more_than_one_that_ended(dialog: Dialog) -> None:
    answered(dialog)
    look(dialog)
    post_message(dialog=dialog, content="And?")
    dialog.refresh_from_db()
    a_generation(dialog, partial_text="One.")

    with CaptureQueriesContext(connection) as queries:
        rendering = look(dialog)

    assert rendering.live is not None
    assert len(queries) <= MOST_STATEMENTS
