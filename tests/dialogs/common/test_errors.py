"""What an error of another library says."""

from __future__ import annotations

import errno
import sqlite3

import pytest
from django.db import OperationalError

from dialogs.common.errors import is_full


class DiskFull(Exception):
    """As psycopg's."""

    sqlstate = "53100"


FULL = sqlite3.OperationalError("database or disk is full")
FULL.sqlite_errorcode = sqlite3.SQLITE_FULL


@pytest.mark.parametrize("cause", [FULL, DiskFull(), OSError(errno.ENOSPC, "No space left on device")], ids=str)
def test_a_full_disk_is_known_in_whatever_error_it_is_wrapped(cause: Exception) -> None:
    wrapped = OperationalError("it failed")
    wrapped.__cause__ = cause

    assert is_full(cause)
    assert is_full(wrapped)


@pytest.mark.parametrize("error", [None, OperationalError("database is locked"), OSError(errno.EIO, "broken")], ids=str)
def test_another_error_is_no_full_disk(error: Exception | None) -> None:
    assert not is_full(error)
