"""The cursor of statements that are put into words once: one for as long as a connection is open.

To open and close one for each of a request's twenty statements takes Python longer than they take SQLite.
"""

from __future__ import annotations

from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

KEPT = "dominds_cursor"


def database() -> BaseDatabaseWrapper:
    """`django.db.connection` looks anew at each of many steps which one it is."""
    return connections[DEFAULT_DB_ALIAS]


def cursor_of(connection: BaseDatabaseWrapper) -> CursorWrapper:
    """Nobody else may be using it: whoever executes a statement fetches all of its rows at once."""
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    opened, cursor = connection.__dict__.get(KEPT, (None, None))
    if opened is connection.connection and not connection.queries_logged:
        return cursor
    cursor = connection.cursor()
    if not connection.queries_logged:
        connection.__dict__[KEPT] = connection.connection, cursor
    return cursor


def rows_of(connection: BaseDatabaseWrapper, sql: str, params: Any) -> list[Any]:
    """All that it finds."""
    cursor = cursor_of(connection)
    cursor.execute(sql, params)
    with connection.wrap_database_errors:
        return cursor.cursor.fetchall()
