"""What must be true before anything starts: room on the disk, a free port, the programs. One line each when not."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from django.conf import settings

from dominds.supervisor import llama_server, probes
from dominds.supervisor.lock import CannotStart

PROGRAMS = ("daphne", "celery")
# The rights of everybody but a file's owner.
OTHERS = 0o077
PRIVATE = ("backups", "log", "run", "valkey")


def check_writable(data_dir: Path) -> None:
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=data_dir):
            pass
    except OSError as error:
        raise CannotStart(
            f"The data folder {data_dir} cannot be written ({error.strerror}). "
            "Change its permissions, or set DOMINDS_DATA_DIR to another folder."
        ) from error


def make_private(data_dir: Path) -> None:
    """Let only the owner read the data folder and what lies in it. `doctor` tells what could not be changed."""
    for path in (data_dir, *_kept_in(data_dir)):
        with contextlib.suppress(OSError):
            if not path.is_symlink() and open_to_others(path):
                path.chmod(path.stat().st_mode & ~OTHERS)


def open_to_others(path: Path) -> bool:
    return bool(path.stat().st_mode & OTHERS)


def _kept_in(data_dir: Path) -> Iterator[Path]:
    """Agents' workspaces and served files are no secrets of ours, and lie behind the same door."""
    yield from data_dir.glob("*")
    for name in PRIVATE:
        yield from (data_dir / name).rglob("*")


def check_disk(data_dir: Path) -> None:
    free_mb = shutil.disk_usage(data_dir).free / 1e6
    if free_mb < settings.DOMINDS_MIN_FREE_MB:
        raise CannotStart(
            f"Only {free_mb:.0f} MB are free for {data_dir}; {settings.DOMINDS_MIN_FREE_MB:.0f} MB are needed. "
            "Free some, or set DOMINDS_DATA_DIR to a folder on another disk."
        )


def check_port(host: str, port: int) -> None:
    problem = probes.port_problem(host, port)
    if problem:
        raise CannotStart(
            f"Cannot listen on {host} port {port}: {problem.strerror or problem}. "
            f"Stop what uses it, or choose another: `{settings.COMMAND} up --port {port % 65535 + 1}`."
        )


def host_hint(host: str) -> str:
    """Django answers only to names that it was told, and a server on every address has many."""
    if host not in probes.ANY_ADDRESS or "DOMINDS_ALLOWED_HOSTS" in os.environ:
        return ""
    return f"listening on {host}: set DOMINDS_ALLOWED_HOSTS to the names by which people reach this machine"


def check_programs(*, demo: bool) -> None:
    missing = [name for name in PROGRAMS if not find_spec(name)]
    if missing:
        raise CannotStart(f"{' and '.join(missing)} not installed. Run `make install`, or install dominds again.")
    if demo and not (find_spec("xllamacpp") and llama_server.weights()):
        raise CannotStart("The demo model is not installed. Run `make install`, or start with --no-demo.")
