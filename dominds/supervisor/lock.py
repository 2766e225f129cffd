"""Locks: one `up` at a time on a data folder, and none on a database that is being restored.

The operating system or the database holds them, and releases a lock when its holder dies.
"""

from __future__ import annotations

import contextlib
import fcntl
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class CannotStart(Exception):
    """Something outside must change first."""


class GaveUp(Exception):
    """A child died too often."""


# The id of the advisory lock; it must be the same for all machines on one database.
IN_USE = 20261124
LOOK_EVERY_SECONDS = 2.0
RESTORED = "A backup is being restored to this database. Start again when that is done."


@dataclass(frozen=True, kw_only=True)
class Database:
    """The database to lock: SQLite's file, or PostgreSQL's address as libpq's connection string."""

    file: str = ""
    address: str = ""


def configured_database() -> Database:
    from django.db import connection

    if connection.vendor != "postgresql":
        return Database(file=str(connection.settings_dict["NAME"]))
    return Database(address=_address(connection.get_connection_params()))


def _address(parameters: dict[str, object]) -> str:
    """Only the parameters that libpq knows: Django adds others."""
    from psycopg.conninfo import make_conninfo
    from psycopg.pq import Conninfo

    known = {option.keyword.decode() for option in Conninfo.get_defaults()}
    return make_conninfo(**{name: str(value) for name, value in parameters.items() if name in known})


@contextlib.contextmanager
def database_in_use(database: Database) -> Iterator[threading.Event]:
    """The shared lock that every `up` on this database holds, from any data folder and machine; `restore` needs it
    alone.

    A restarted PostgreSQL forgets its locks. The event is set if a `restore` has taken it then.
    """
    taken, over = threading.Event(), threading.Event()
    with _database_lock(database, alone=False) as held:
        if not held:
            raise CannotStart(RESTORED)
        # In a thread, since the server may not answer for long.
        holding = threading.Thread(target=_hold, args=(database, over, taken), daemon=True)
        if database.address:
            holding.start()
        try:
            yield taken
        finally:
            over.set()
            if database.address:
                holding.join(LOOK_EVERY_SECONDS)


def _hold(database: Database, over: threading.Event, taken: threading.Event) -> None:
    """Take the lock again each time it is lost, until `over` is set or a restore has it."""
    import psycopg

    while not over.is_set():
        with contextlib.suppress(psycopg.Error), _database_lock(database, alone=False) as held:
            if not held:
                taken.set()
                return
            while not over.wait(LOOK_EVERY_SECONDS):
                held.execute("SELECT 1")
        over.wait(LOOK_EVERY_SECONDS)


@contextlib.contextmanager
def database_to_oneself() -> Iterator[None]:
    """The exclusive lock for `restore`. Raises CannotStart if an `up` runs on this database."""
    with _database_lock(configured_database(), alone=True) as held:
        if not held:
            raise CannotStart(
                "Dominds runs on this database, from another data folder or on another machine. Stop it there first."
            )
        yield


@contextlib.contextmanager
def _database_lock(database: Database, *, alone: bool) -> Iterator[Any]:
    """PostgreSQL's connection that holds the lock, or True for a file; None if it was not free."""
    if database.file:
        with Path(f"{database.file}.lock").open("a") as file:
            yield _is_flocked(file.fileno(), fcntl.LOCK_EX if alone else fcntl.LOCK_SH) or None
        return
    import psycopg

    # A connection of its own: Django's come and go.
    with psycopg.connect(database.address, autocommit=True) as held:
        row = held.execute(f"SELECT pg_try_advisory_lock{'' if alone else '_shared'}(%s)", [IN_USE]).fetchone()
        yield held if row and row[0] else None


def _is_flocked(file: int, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def sole_user(data_dir: Path, *, purpose: str) -> Iterator[None]:
    """Lock the data folder. Raises CannotStart if Dominds runs on it."""
    path = data_dir / "run" / "up.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise CannotStart(
                f"Dominds already runs on {data_dir}. "
                f"Stop it before {purpose}, or set DOMINDS_DATA_DIR to another folder."
            ) from error
        # Left behind by one that was killed.
        _note(data_dir).unlink(missing_ok=True)
        yield


def is_used(data_dir: Path) -> bool:
    try:
        with sole_user(data_dir, purpose="asking"):
            return False
    except CannotStart:
        return True


@contextlib.contextmanager
def listening(data_dir: Path, host: str, port: int) -> Iterator[None]:
    """Let other commands on this data folder know where its web server listens. Its caller is the sole user."""
    note = _note(data_dir)
    note.write_text(f"{host} {port}\n")
    try:
        yield
    finally:
        note.unlink(missing_ok=True)


def listens_at(data_dir: Path) -> tuple[str, int] | None:
    """Host and port of the web server that `up` runs here; None where none does."""
    if not is_used(data_dir):
        return None
    try:
        host, port = _note(data_dir).read_text().split()
    except (OSError, ValueError):
        return None
    return host, int(port)


def _note(data_dir: Path) -> Path:
    return data_dir / "run" / "web.address"
