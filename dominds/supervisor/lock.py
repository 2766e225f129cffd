"""One `up` at a time on a data folder, and nobody at all on a database that is being replaced.

Whoever keeps a lock, the system or the database, drops it when its holder dies, however that dies.
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
    """A child dies as fast as it is started."""


# Any number, as long as every machine on one database uses the same.
IN_USE = 20261124
LOOK_EVERY_SECONDS = 2.0
RESTORED = "A backup is being restored to this database. Start again when that is done."


@dataclass(frozen=True, kw_only=True)
class Database:
    """Which one is locked: a file of SQLite's, or a PostgreSQL by its address in libpq's words."""

    file: str = ""
    address: str = ""


def configured_database() -> Database:
    from django.db import connection

    if connection.vendor != "postgresql":
        return Database(file=str(connection.settings_dict["NAME"]))
    return Database(address=_address(connection.get_connection_params()))


def _address(parameters: dict[str, object]) -> str:
    """Without what Django's own connections are told beside it."""
    from psycopg.conninfo import make_conninfo
    from psycopg.pq import Conninfo

    known = {option.keyword.decode() for option in Conninfo.get_defaults()}
    return make_conninfo(**{name: str(value) for name, value in parameters.items() if name in known})


@contextlib.contextmanager
def database_in_use(database: Database) -> Iterator[threading.Event]:
    """Held by every `up`, from whatever data folder and machine: beside it others may hold it, but no `restore`.

    The event: a restore has taken it, as a PostgreSQL that was restarted forgets who held it.
    """
    taken, over = threading.Event(), threading.Event()
    with _database_lock(database, alone=False) as held:
        if not held:
            raise CannotStart(RESTORED)
        # A server may not answer for long, and `up` has others to look after meanwhile.
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
    """Take it again each time it is lost, until `over`; or until somebody else has it."""
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
    """Hold off every `up` on this database while `restore` works. Raises CannotStart where one runs."""
    with _database_lock(configured_database(), alone=True) as held:
        if not held:
            raise CannotStart(
                "Dominds runs on this database, from another data folder or on another machine. Stop it there first."
            )
        yield


@contextlib.contextmanager
def _database_lock(database: Database, *, alone: bool) -> Iterator[Any]:
    """The connection that holds it, or anything true of a file; else None."""
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
    """Hold the data folder, or say who does."""
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
        # One that was killed left it.
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
