"""A database that may not grow, as on a full disk: SQLite's own bound, in every connection."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.db.backends.signals import connection_created

from dialogs.common.threads import close_threads

# More than has room in the pages that a file has anyway.
LARGE = "A long message. " * 20_000


@contextmanager
def full_database() -> Iterator[None]:
    if connection.vendor != "sqlite":
        pytest.skip("Only SQLite can be told to be full.")
    close_threads()
    if connection.connection:
        connection.connection.execute("VACUUM")  # what earlier tests freed has room for much
    bound(connection)
    connection_created.connect(bound)
    try:
        yield
    finally:
        connection_created.disconnect(bound)
        close_threads()
        bound(connection, pages=2**30)


def bound(connection: Any, pages: int = 1, **_signal: Any) -> None:
    """At least what it has now. Without Django's cursor, so that it may be called beside an event loop too."""
    if connection.connection:
        connection.connection.execute(f"PRAGMA max_page_count = {pages}")


def full_error() -> OperationalError:
    """As Django raises it: SQLite's own error is its cause."""
    small = sqlite3.connect(":memory:")
    small.execute("PRAGMA max_page_count = 1")
    try:
        small.execute("CREATE TABLE rows (id)")
    except sqlite3.OperationalError as error:
        found = OperationalError(str(error))
        found.__cause__ = error
    small.close()
    return found
