"""An installation of 22 November 2026: its database becomes today's, and nothing in it is lost."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from django.db import connection

from tests.stack import manage, settings_of

# What commit cf95e8a made, where the migrations of before 0014 were many: one dialog, with one message and one view.
INSTALLATION = Path(__file__).with_name("installation_of_cf95e8a.sql")
NAMES = "SELECT type, name, tbl_name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY 1, 2"
COLUMNS = """
SELECT tables.name, columns.name, columns.type, columns."notnull", columns.pk
FROM sqlite_master AS tables, pragma_table_info(tables.name) AS columns WHERE tables.type = 'table' ORDER BY 1, 2
"""
FOREIGN_KEYS = """
SELECT tables.name, keys."from", keys."table", keys."to"
FROM sqlite_master AS tables, pragma_foreign_key_list(tables.name) AS keys WHERE tables.type = 'table' ORDER BY 1, 2
"""
GUARDED = """
from dialogs.llms.guard import guard_of
from dialogs.llms.words import kept_in_dialog
from dialogs.models import Dialog
dialog = Dialog.objects.get()
guard = guard_of(dialog)
print(dialog.compaction, dialog.agent.compaction, dialog.llm.compaction, guard.off, guard.config.how)
print(kept_in_dialog(dialog))
"""


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of such an installation, after today's migrations."""
    data_dir = tmp_path_factory.mktemp("upgraded")
    with closing(sqlite3.connect(data_dir / "dominds.sqlite3")) as database:
        database.executescript(INSTALLATION.read_text())
    manage("migrate", environment=settings_of(data_dir))
    return data_dir


@pytest.mark.skipif(connection.vendor != "sqlite", reason="the upgraded one is SQLite's")
def test_its_database_has_the_form_of_a_new_one(upgraded: Path, db: None) -> None:
    """That of the tests."""
    for told in (NAMES, COLUMNS, FOREIGN_KEYS):
        with connection.cursor() as new:
            assert asked(upgraded, told) == new.execute(told).fetchall()


def test_its_messages_are_found_and_its_views_hold(upgraded: Path) -> None:
    found = asked(upgraded, "SELECT message_id FROM dialogs_searchtext WHERE words LIKE '%paraffin%'")

    assert found == asked(upgraded, "SELECT id FROM dialogs_message")
    assert asked(upgraded, "SELECT head_run_id FROM dialogs_course") == [(1,)]


def test_its_dialogs_are_compacted_by_themselves(upgraded: Path) -> None:
    done = manage("shell", "-c", GUARDED, environment=settings_of(upgraded))

    *_said, settings, kept = done.stdout.strip().splitlines()
    assert settings == "automatic automatic automatic False passages"
    assert kept == "window 8,192 from the server, 819 kept for the answer; compaction from ≈5,900 tokens on"


def asked(data_dir: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(data_dir / "dominds.sqlite3")) as database:
        return database.execute(query).fetchall()
