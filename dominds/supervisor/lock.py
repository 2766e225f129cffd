"""One `up` at a time on a data folder, and nobody at all on a database that is being replaced.

Whoever keeps a lock, the system or the database, drops it when its holder dies, however that dies.
"""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

from django.db import connection

from dominds.supervisor.errors import CannotStart

# Any number, as long as every machine on one database uses the same.
IN_USE = 20261124


@contextlib.contextmanager
def database_in_use() -> Iterator[None]:
    """Held by every `up`, from whatever data folder and machine: beside it others may hold it, but no `restore`."""
    with _database_lock(alone=False) as held:
        if not held:
            raise CannotStart("A backup is being restored to this database. Start again when that is done.")
        yield


@contextlib.contextmanager
def database_to_oneself() -> Iterator[None]:
    """Hold off every `up` on this database while `restore` works. Raises CannotStart where one runs."""
    with _database_lock(alone=True) as held:
        if not held:
            raise CannotStart(
                "Dominds runs on this database, from another data folder or on another machine. Stop it there first."
            )
        yield


@contextlib.contextmanager
def _database_lock(*, alone: bool) -> Iterator[bool]:
    if connection.vendor != "postgresql":
        with Path(f"{connection.settings_dict['NAME']}.lock").open("a") as file:
            yield _is_flocked(file.fileno(), fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        return
    # A connection of its own: the others come and go.
    with contextlib.closing(connection.copy()) as held, held.cursor() as cursor:
        cursor.execute(f"SELECT pg_try_advisory_lock{'' if alone else '_shared'}(%s)", [IN_USE])
        yield bool(cursor.fetchone()[0])


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
