"""A backup holds everything, and restoring it loses nothing of what was there."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import tarfile
import threading
import time
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection, connections, transaction

from dialogs.common.threads import close_threads
from dominds import backups
from dominds.supervisor import lock
from dominds.supervisor.lock import CannotStart

# Connections are closed and the database is replaced: no test transaction survives that.
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def data_dir(tmp_path: Path, settings: Any) -> Path:
    settings.DOMINDS_DATA_DIR = tmp_path
    (tmp_path / "secret_key").write_text(settings.SECRET_KEY)
    return tmp_path


@pytest.fixture(autouse=True)
def no_thread_keeps_the_replaced_file() -> Iterator[None]:
    """The threads on which async tests ask the database have connections of their own, to the file that was there."""
    yield
    close_threads()
    asyncio.run(sync_to_async(connections.close_all)())


@pytest.fixture
def archive(data_dir: Path) -> Path:
    """A backup of a moment at which there was Alice and nobody else."""
    User.objects.create_user("alice")
    call_command("backup", str(data_dir / "backup.tar.gz"))
    return data_dir / "backup.tar.gz"


def people() -> list[str]:
    return sorted(User.objects.values_list("username", flat=True))


def test_restoring_brings_back_what_was_saved_and_keeps_what_it_replaces(
    archive: Path, data_dir: Path, settings: Any
) -> None:
    """The secret key too."""
    User.objects.all().delete()
    User.objects.create_user("bob")
    (data_dir / "secret_key").write_text("another")

    call_command("restore", str(archive), "--yes")

    assert people() == ["alice"]
    assert (data_dir / "secret_key").read_text() == settings.SECRET_KEY
    assert (data_dir / "secret_key").stat().st_mode & 0o777 == 0o600
    (aside,) = (data_dir / "backups").glob("replaced-*")
    assert (aside / "secret_key").read_text() == "another"
    assert len(list(aside.iterdir())) >= 2


def test_a_differing_key_in_the_environment_is_said(
    archive: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DOMINDS_SECRET_KEY", "yet another")

    call_command("restore", str(archive), "--yes")

    assert "DOMINDS_SECRET_KEY differs" in capsys.readouterr().err


def test_an_archive_is_for_its_owner_only_and_a_backup_overwrites_nothing(archive: Path) -> None:
    assert archive.stat().st_mode & 0o777 == 0o600

    with pytest.raises(CommandError, match="exists"):
        call_command("backup", str(archive))


def test_without_a_name_the_archive_is_new_in_the_data_folder(data_dir: Path) -> None:
    call_command("backup")
    call_command("backup")

    assert len(list((data_dir / "backups").glob("dominds-*.tar.gz"))) == 2


def test_a_backup_that_cannot_be_written_is_one_line(data_dir: Path) -> None:
    with pytest.raises(CommandError, match="cannot be written"):
        call_command("backup", str(data_dir / "secret_key" / "backup.tar.gz"))


def test_a_full_disk_is_one_line_too(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = data_dir / "full"
    monkeypatch.setattr(backups, "dump_database", lambda target: fill(target))

    with pytest.raises(CommandError, match=r"backup\.tar\.gz cannot be written: .* full\.$"):
        call_command("backup", str(full / "backup.tar.gz"))

    assert not list(full.iterdir())


def fill(target: Path) -> None:
    """As SQLite where the disk is full."""
    with contextlib.closing(sqlite3.connect(target)) as database:
        database.execute("PRAGMA max_page_count = 1")
        database.execute("CREATE TABLE t (x)")
        database.execute("INSERT INTO t VALUES (zeroblob(1000000))")


def test_nothing_is_restored_to_a_database_that_is_used_from_another_folder(archive: Path) -> None:
    User.objects.create_user("bob")

    database = lock.configured_database()
    with lock.database_in_use(database), lock.database_in_use(database):
        with pytest.raises(CommandError, match="runs on this database"):
            call_command("restore", str(archive), "--yes")
        kept = people()
    call_command("restore", str(archive), "--yes")

    assert (kept, people()) == (["alice", "bob"], ["alice"])


@pytest.mark.skipif(not os.environ.get("DATABASE_URL"), reason="a file knows who uses it as long as they live")
def test_nothing_is_restored_beside_dominds_though_the_database_was_restarted(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "LOOK_EVERY_SECONDS", 0.05)
    with lock.database_in_use(lock.configured_database()) as taken:
        end_those_who_lock()
        wait_for_locks(1)
        with pytest.raises(CommandError, match="runs on this database"):
            call_command("restore", str(archive), "--yes")
        assert not taken.is_set()


@pytest.mark.skipif(not os.environ.get("DATABASE_URL"), reason="a file knows who uses it as long as they live")
def test_dominds_is_told_where_a_restore_was_faster_after_the_database_was_restarted(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "LOOK_EVERY_SECONDS", 0.5)
    with lock.database_in_use(lock.configured_database()) as taken:
        wait_for_locks(2)
        end_those_who_lock()
        with lock.database_to_oneself():
            assert taken.wait(5)


def wait_for_locks(least: int) -> None:
    """`up` holds the database twice: by what it began with, and by the thread that takes it again."""
    for _look in range(200):
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted")
            if cursor.fetchone()[0] >= least:
                return
        time.sleep(0.05)
    pytest.fail(f"The database is not held {least} times after ten seconds.")


def end_those_who_lock() -> None:
    """As a restart of the server does."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pid, 2000) FROM pg_locks WHERE locktype = 'advisory'")


@pytest.mark.skipif(not os.environ.get("DATABASE_URL"), reason="a file is replaced whole")
def test_a_backup_of_before_an_upgrade_can_be_restored_after_it(archive: Path) -> None:
    User.objects.create_user("bob")
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE dialogs_later (id int PRIMARY KEY, dialog_id uuid REFERENCES dialogs_dialog)")
        cursor.execute("CREATE TABLE anothers (id int PRIMARY KEY, dialog_id uuid REFERENCES dialogs_dialog)")

    try:
        call_command("restore", str(archive), "--yes")
        tables = connection.introspection.table_names()
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS anothers, dialogs_later CASCADE")

    assert (people(), "dialogs_later" in tables, "anothers" in tables) == (["alice"], False, True)


def test_nobody_starts_on_a_database_that_is_being_replaced(archive: Path) -> None:
    with (
        lock.database_to_oneself(),
        pytest.raises(CannotStart, match="being restored"),
        lock.database_in_use(lock.configured_database()),
    ):
        pass


@pytest.mark.parametrize(
    ("where", "what", "words"),
    [
        ("builtins.input", lambda _prompt: "no", "Nothing was changed"),
        ("sys.stdin", StringIO(), "--yes goes on without"),  # where nobody can be asked
    ],
)
def test_restoring_asks_first(
    archive: Path, monkeypatch: pytest.MonkeyPatch, where: str, what: Any, words: str
) -> None:
    User.objects.create_user("bob")
    monkeypatch.setattr(where, what)

    with pytest.raises(CommandError, match=words):
        call_command("restore", str(archive))

    assert people() == ["alice", "bob"]


def test_restoring_refuses_while_dominds_runs(archive: Path, data_dir: Path) -> None:
    with (
        lock.sole_user(data_dir, purpose="running"),
        pytest.raises(CommandError, match=r"already runs on .* Stop it before restoring"),
    ):
        call_command("restore", str(archive), "--yes")


def changed(archive: Path, name: str, content: bytes) -> Path:
    """A copy of the archive with other content under one name."""
    copy = archive.with_name("changed.tar.gz")
    part = archive.with_name("part")
    with tarfile.open(archive) as old, tarfile.open(copy, "w:gz") as new:
        for member in old:
            source = old.extractfile(member)
            assert source
            part.write_bytes(content if member.name == name else source.read())
            new.add(part, arcname=member.name)
    return copy


def test_a_file_that_is_no_backup_is_said(data_dir: Path) -> None:
    file = data_dir / "letter.txt"
    file.write_text("Dear Bob")

    with pytest.raises(CommandError, match="is not a backup of Dominds"):
        call_command("restore", str(file), "--yes")


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        (b'{"engine": "sqlite", "version": "9.9", "made_at": "2030-01-01T00:00:00", "format": 2}', r"Dominds 9\.9"),
        (b'{"engine": "oracle", "version": "0.1", "made_at": "2030-01-01T00:00:00", "format": 1}', "a oracle database"),
    ],
)
def test_a_backup_in_a_newer_form_or_of_another_kind_of_database_is_refused(
    archive: Path, manifest: bytes, words: str
) -> None:
    with pytest.raises(CommandError, match=words):
        call_command("restore", str(changed(archive, "manifest.json", manifest)), "--yes")


@pytest.mark.long
@pytest.mark.skipif(bool(os.environ.get("DATABASE_URL")), reason="counts rows in an SQLite file")
def test_two_hundred_backups_made_while_somebody_writes_are_whole(data_dir: Path) -> None:
    enough = threading.Event()
    writer = threading.Thread(target=add_pairs, args=(enough,))
    writer.start()

    counts = []
    for number in range(200):
        copy = data_dir / f"copy-{number}"
        backups.dump_database(copy)
        with contextlib.closing(sqlite3.connect(copy)) as database:
            counts += database.execute("SELECT count(*) FROM auth_user").fetchone()
    enough.set()
    writer.join()

    assert counts == sorted(counts)
    assert counts[0] < counts[-1]
    assert not any(count % 2 for count in counts), "a backup holds half a transaction"


def add_pairs(enough: threading.Event) -> None:
    """Two people in every transaction, until it is enough."""
    number = 0
    while not enough.is_set():
        number += 1
        with transaction.atomic():
            User.objects.bulk_create([User(username=f"{name}-{number}") for name in ("alice", "bob")])
    connection.close()


@pytest.mark.skipif(bool(os.environ.get("DATABASE_URL")), reason="SQLite's own check")
@pytest.mark.parametrize("content", [b"not a database at all", b""])
def test_a_damaged_database_changes_nothing(archive: Path, content: bytes) -> None:
    User.objects.create_user("bob")

    with pytest.raises(CommandError, match="Nothing was changed"):
        call_command("restore", str(changed(archive, "database", content)), "--yes")

    assert people() == ["alice", "bob"]


def test_an_archive_that_is_cut_off_or_damaged_changes_nothing(archive: Path) -> None:
    User.objects.create_user("bob")
    whole = archive.read_bytes()
    middle = len(whole) // 2

    for broken in (whole[:middle], whole[:-100], whole[:middle] + bytes(100) + whole[middle + 100 :]):
        archive.write_bytes(broken)
        with pytest.raises(CommandError, match=r"is not a backup|cannot be read|is damaged|pg_restore failed"):
            call_command("restore", str(archive), "--yes")

    assert people() == ["alice", "bob"]


@pytest.mark.skipif(bool(os.environ.get("DATABASE_URL")), reason="a damaged file is SQLite's trouble")
def test_a_damaged_database_can_be_replaced(archive: Path) -> None:
    connection.close()
    backups.sqlite_path().write_bytes(b"scribbles" * 1000)

    call_command("restore", str(archive), "--yes")

    assert people() == ["alice"]


@pytest.mark.skipif(not os.environ.get("DATABASE_URL"), reason="PostgreSQL's own programs")
def test_of_what_a_postgres_program_says_the_error_is_told(data_dir: Path) -> None:
    with pytest.raises(backups.BackupError, match='psql failed: ERROR:  column "nothing" does not exist'):
        backups.run_postgres("psql", "--command=SELECT nothing")


@pytest.mark.skipif(not os.environ.get("DATABASE_URL"), reason="PostgreSQL's own programs")
def test_missing_postgres_programs_are_said(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")

    with pytest.raises(CommandError, match="pg_dump is not installed"):
        call_command("backup")
