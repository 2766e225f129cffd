"""One `up` at a time on a data folder. The system drops the lock when its holder dies, however it dies."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

from dominds.supervisor.errors import CannotStart


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
