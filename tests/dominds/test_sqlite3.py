"""Statements in SQLite's words: as Django writes them, and looked through once."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.db import connection
from django.db.backends.sqlite3 import base

from dominds.sqlite3.base import _with_question_marks

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif("connection.vendor != 'sqlite'", reason="of SQLite"),
]


class Counting:
    """A pattern that counts how often it looks through a text."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.pattern, self.looks = pattern, 0

    def sub(self, new: str, text: str) -> str:
        self.looks += 1
        return self.pattern.sub(new, text)


@pytest.fixture
def pattern(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counting]:
    counting = Counting(base.FORMAT_QMARK_REGEX)
    monkeypatch.setattr(base, "FORMAT_QMARK_REGEX", counting)
    _with_question_marks.cache_clear()
    yield counting
    _with_question_marks.cache_clear()


def test_a_statement_is_looked_through_once_for_its_slots(pattern: Counting) -> None:
    with connection.cursor() as cursor:
        found = [cursor.execute("SELECT %s || '%%', %s", ["a", number]).fetchone() for number in range(3)]

    assert found == [("a%", 0), ("a%", 1), ("a%", 2)]
    assert pattern.looks == 1


def test_slots_that_have_names_are_filled_by_them() -> None:
    with connection.cursor() as cursor:
        found = [cursor.execute("SELECT %(one)s, %(two)s", {"two": 2, "one": one}).fetchone() for one in (1, "%s")]

    assert found == [(1, 2), ("%s", 2)]


def test_a_statement_without_values_keeps_its_percent_signs() -> None:
    with connection.cursor() as cursor:
        assert cursor.execute("SELECT '%s %%'").fetchone() == ("%s %%",)
