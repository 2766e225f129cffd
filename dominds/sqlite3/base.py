"""Django's SQLite backend, which caches the conversion of placeholders, begins transactions with the kept cursor, and
has PostgreSQL's bounds of numbers.

Django converts `%s` to `?` each time a statement is executed. For a statement with sixty columns that takes as long as
SQLite takes to execute it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from sqlite3 import dbapi2 as Database  # noqa: N812  Django's name
from typing import Any

from django.db.backends.base.operations import BaseDatabaseOperations
from django.db.backends.sqlite3 import base, operations

from dominds.prepared import cursor_of

# How many statements are cached. A process has some hundreds.
MOST = 512


class DatabaseOperations(operations.DatabaseOperations):
    # So what a form takes here can be imported elsewhere.
    integer_field_range = BaseDatabaseOperations.integer_field_range


class DatabaseWrapper(base.DatabaseWrapper):
    ops_class = DatabaseOperations

    def create_cursor(self, name: str | None = None) -> Any:
        return self.connection.cursor(factory=Cursor)

    def _start_transaction_under_autocommit(self) -> None:
        mode = self.transaction_mode  # type: ignore[attr-defined]  # the stubs lack it
        cursor_of(self).execute(f"BEGIN {mode or 'DEFERRED'}")


class Cursor(base.SQLiteCursorWrapper):
    def execute(self, query: str, params: Any = None) -> Any:
        if type(params) is list or type(params) is tuple:
            return Database.Cursor.execute(self, _with_question_marks(query), params)
        return super().execute(query, params)

    def convert_query(self, query: str, *, param_names: Sequence[str] | None = None) -> str:
        if param_names is None:
            return _with_question_marks(query)
        return super().convert_query(query, param_names=param_names)


@lru_cache(maxsize=MOST)
def _with_question_marks(query: str) -> str:
    return base.FORMAT_QMARK_REGEX.sub("?", query).replace("%%", "%")
