"""A backup: one archive with the database, the secret key that encrypts provider keys, and a manifest.

For the commands `backup` (Dominds may run) and `restore` (it must not).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import tarfile
import tempfile
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from django.conf import settings
from django.db import connection, connections
from django.utils import timezone

from dominds import __version__

FORMAT = 1
DATABASE, SECRET_KEY, MANIFEST = "database", "secret_key", "manifest.json"
# What reading raises for an archive that is cut off, damaged, or something else.
UNREADABLE = (OSError, EOFError, zlib.error, tarfile.TarError, ValueError, TypeError, KeyError)
# Drops all tables of Dominds, also those of another version, which the archive lacks but which refer to its tables.
DROP = """DO $$ DECLARE name text; BEGIN
FOR name IN SELECT format('%I.%I', schemaname, tablename) FROM pg_tables
  WHERE schemaname = current_schema() AND tablename ~ '^(dialogs|health)_'
LOOP EXECUTE 'DROP TABLE ' || name || ' CASCADE'; END LOOP; END $$;
"""


class BackupError(Exception):
    """A backup cannot be made or restored. The text is one line for a person."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    engine: str
    version: str
    made_at: str
    format: int = FORMAT


def folder() -> Path:
    path = settings.DOMINDS_DATA_DIR / "backups"
    path.mkdir(parents=True, exist_ok=True)
    return path


def stamped(name: str) -> Path:
    """A path in the backup folder with the present time in its name."""
    return folder() / name.format(time=f"{timezone.now():%Y%m%d-%H%M%S-%f}")


def make_backup(target: Path) -> Manifest:
    manifest = Manifest(engine=connection.vendor, version=__version__, made_at=timezone.now().isoformat())
    if target.exists():
        raise BackupError(f"{target} exists. Choose another name.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as name:
            draft = Path(name)
            dump_database(draft / DATABASE)
            (draft / SECRET_KEY).write_text(settings.SECRET_KEY)
            (draft / MANIFEST).write_text(json.dumps(asdict(manifest)))
            pack(draft, target)
    except (OSError, sqlite3.Error) as error:
        raise BackupError(f"{target} cannot be written: {getattr(error, 'strerror', error)}.") from error
    return manifest


def pack(draft: Path, target: Path) -> None:
    """Write the archive, under another name until it is complete. It holds secrets, so only its owner may read it."""
    unfinished = draft / "archive"
    unfinished.touch(mode=0o600)
    with tarfile.open(unfinished, "w:gz", compresslevel=6) as archive:
        for name in (MANIFEST, SECRET_KEY, DATABASE):
            archive.add(draft / name, arcname=name)
    unfinished.replace(target)


def dump_database(target: Path) -> None:
    if connection.vendor == "sqlite":
        copy_sqlite(source=sqlite_path(), target=target)
    else:
        run_postgres("pg_dump", "--format=custom", "--no-owner", f"--file={target}")


def sqlite_path() -> Path:
    return Path(connection.settings_dict["NAME"])


def copy_sqlite(*, source: Path, target: Path) -> None:
    """A consistent copy, also while others write: SQLite's online backup."""
    with contextlib.closing(sqlite3.connect(source)) as old, contextlib.closing(sqlite3.connect(target)) as new:
        old.backup(new)


def read_manifest(archive: Path) -> Manifest:
    """The archive's manifest. Raises BackupError if it cannot be restored here."""
    try:
        with tarfile.open(archive) as file:
            manifest = Manifest(**json.load(member(file, MANIFEST)))
    except UNREADABLE as error:
        raise BackupError(f"{archive} is not a backup of Dominds: {error}.") from error
    if manifest.format != FORMAT:
        raise BackupError(f"{archive} was made by Dominds {manifest.version}: install that version or a newer one.")
    if manifest.engine != connection.vendor:
        raise BackupError(
            f"{archive} holds a {manifest.engine} database and DATABASE_URL names {connection.vendor}. "
            "Set DATABASE_URL accordingly; dialogs move between databases by export and import."
        )
    return manifest


def restore_backup(archive: Path) -> Path:
    """Replace database and secret key by the archive's. Returns the folder with what was replaced."""
    read_manifest(archive)
    with tempfile.TemporaryDirectory(dir=folder()) as name, tarfile.open(archive) as file:
        found, key = Path(name) / DATABASE, Path(name) / SECRET_KEY
        take_out(file, DATABASE, found)
        take_out(file, SECRET_KEY, key)
        if connection.vendor == "sqlite":
            check_sqlite(found)
        aside = stamped("replaced-{time}")
        aside.mkdir(mode=0o700)
        replace_database(found, aside)
        replace_file(settings.DOMINDS_DATA_DIR / SECRET_KEY, key, aside)
    return aside


def take_out(archive: tarfile.TarFile, name: str, target: Path) -> None:
    """Extract one member to our own path: paths in an archive are not trusted."""
    target.touch(mode=0o600)
    try:
        with target.open("wb") as file:
            shutil.copyfileobj(member(archive, name), file)
    except UNREADABLE as error:
        raise BackupError(f"The archive's {name} cannot be read: {error}. Nothing was changed.") from error


def member(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    found = archive.extractfile(name)
    if found is None:
        raise BackupError(f"The archive has no {name}.")
    return found


def check_sqlite(path: Path) -> None:
    try:
        with contextlib.closing(sqlite3.connect(path)) as database:
            (verdict,) = database.execute("PRAGMA quick_check").fetchone()
            # An empty file passes the check, but has no tables.
            database.execute("SELECT 1 FROM django_migrations LIMIT 1")
    except sqlite3.DatabaseError as error:
        raise BackupError(f"The archive's database is damaged: {error}. Nothing was changed.") from error
    if verdict != "ok":
        raise BackupError(f"The archive's database is damaged: {verdict}. Nothing was changed.")


def replace_database(found: Path, aside: Path) -> None:
    connections.close_all()
    if connection.vendor == "sqlite":
        # Moved, not copied: a damaged database can be replaced too. The old write-ahead log must not
        # be played into the new file.
        for suffix in ("-wal", "-shm"):
            replace_file(Path(f"{sqlite_path()}{suffix}"), None, aside)
        replace_file(sqlite_path(), found, aside)
    else:
        dump_database(aside / DATABASE)
        drop, script = found.with_name("drop.sql"), found.with_name("restore.sql")
        drop.write_text(DROP)
        # Read completely before anything is changed, since an archive may be damaged.
        run_postgres("pg_restore", "--clean", "--if-exists", "--no-owner", f"--file={script}", str(found), asks=False)
        once = ("--single-transaction", "--set=ON_ERROR_STOP=1")
        run_postgres("psql", "--quiet", "--no-psqlrc", *once, f"--file={drop}", f"--file={script}")


def replace_file(old: Path, new: Path | None, aside: Path) -> None:
    if old.exists():
        shutil.move(old, aside / old.name)
    if new:
        shutil.move(new, old)


def run_postgres(name: str, *arguments: str, asks: bool = True) -> None:
    """Run one of PostgreSQL's programs. The password is in the environment, since everyone can read a command line.

    `asks`: it connects to the database.
    """
    program = shutil.which(name)
    if not program:
        raise BackupError(f"{name} is not installed. Install PostgreSQL's client programs.")
    base = connection.settings_dict
    where = {"--host": base["HOST"], "--port": base["PORT"], "--username": base["USER"], "--dbname": base["NAME"]}
    options = [f"{option}={value}" for option, value in where.items() if value and asks]
    environment = {**os.environ, "PGPASSWORD": base["PASSWORD"] or ""}
    done = subprocess.run([program, *options, *arguments], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        # A killed program may end without a message.
        said = done.stderr.strip().splitlines() or [f"it ended with {done.returncode} and said nothing."]
        raise BackupError(f"{name} failed: {next((line for line in said if 'error:' in line.lower()), said[-1])}")
