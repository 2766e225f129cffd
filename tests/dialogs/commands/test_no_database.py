"""Commands while the database is away: a sentence that says what to do, and a status that a script can ask."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.environment import free_port
from tests.stack import manage, settings_of

COMMANDS = [
    ("dialog", "import", "-", "--owner", "alice"),
    ("dialog", "export", "0f6b5b52-0000-4000-8000-000000000000"),
    ("apikey", "create", "laptop", "--user", "alice", "--quiet"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_database_that_is_away_is_told_in_a_sentence(command: tuple[str, ...], tmp_path: Path) -> None:
    away = f"postgres://dominds@127.0.0.1:{free_port()}/dominds"

    done = manage(*command, environment=settings_of(tmp_path, DATABASE_URL=away), check=False)

    assert done.returncode == 1
    assert "The database cannot be used: " in done.stderr
    assert "See that it runs and that DATABASE_URL is right, then try again" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_database_without_tables_is_told_in_a_sentence(tmp_path: Path) -> None:
    done = manage("apikey", "list", environment=settings_of(tmp_path), check=False)

    assert done.returncode == 1
    assert "no such table" in done.stderr
    assert "`manage.py migrate` makes its tables" in done.stderr
    assert "Traceback" not in done.stderr


def test_whoever_looks_for_the_fault_is_shown_where_it_was(tmp_path: Path) -> None:
    done = manage("apikey", "--traceback", "list", environment=settings_of(tmp_path), check=False)

    assert "Traceback" in done.stderr
