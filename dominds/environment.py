"""Reads environment variables for `dominds.settings`. An invalid value raises an error that names the variable."""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import sys
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

SQLITE_OPTIONS = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
}
# A statement is prepared when a connection executes it a second time: parsing and planning take PostgreSQL longer than
# executing most statements.
PREPARED = {"server_side_binding": True, "prepare_threshold": 1}

env = environ.Env()


def data_folder() -> Path:
    """Where programs keep a person's data on this system."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "dominds"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "dominds"


def positive(name: str, default: float) -> float:
    """A number above zero from the environment."""
    text = os.environ.get(name, "").strip()
    try:
        # Not django-environ's parser, which drops letters and reads 1e3 as 13.
        value = float(text) if text else default
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must be a number, not {text!r}.") from error
    if not 0 < value < math.inf:
        raise ImproperlyConfigured(f"{name} must be a number above zero, not {text!r}.")
    return value


def whole(name: str, default: int) -> int:
    """A whole number from the environment, zero included."""
    text = os.environ.get(name, "").strip() or str(default)
    # int() alone would also accept other scripts' digits, and 1_000.
    if not (text.isascii() and text.isdigit()):
        raise ImproperlyConfigured(f"{name} must be a whole number, 0 or more, not {text!r}.")
    return int(text)


def port(name: str, default: int) -> int:
    """A TCP port from the environment."""
    number = positive(name, default)
    if number != int(number) or number > 65535:
        raise ImproperlyConfigured(f"{name} must be a port from 1 to 65535, not {os.environ[name]!r}.")
    return int(number)


def flag(name: str, *, default: bool) -> bool:
    """A yes or no from the environment; django-environ would read any other word as no."""
    word = os.environ.get(name, "").strip().lower()
    if word in {"1", "true", "yes", "on"}:
        return True
    if word in {"0", "false", "no", "off"}:
        return False
    if word:
        raise ImproperlyConfigured(f"{name} must be yes or no, not {os.environ[name]!r}.")
    return default


def one_of(name: str, default: str, allowed: Collection[str]) -> str:
    """A word from the environment that must be a known one."""
    word = env.str(name, default=default)
    if word not in allowed:
        raise ImproperlyConfigured(f"{name} is {word!r}, which is not known here.")
    return word


def stored_once(path: Path, make: Callable[[], str]) -> str:
    """The content of this file in the data folder, which only its owner can read; made if it is missing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            # Written, then linked: of two processes that start together one wins, and both read the same.
            with tempfile.NamedTemporaryFile("w", dir=path.parent) as draft:
                draft.write(make())
                draft.flush()
                with contextlib.suppress(FileExistsError):
                    os.link(draft.name, path)
        return path.read_text().strip()
    except OSError as error:
        raise ImproperlyConfigured(f"DOMINDS_DATA_DIR: {path} cannot be used: {error.strerror}.") from error


def embedded_redis() -> str:
    """A new address for the embedded server, with a port below those of outgoing connections."""
    return f"redis://:{secrets.token_urlsafe(24)}@127.0.0.1:{secrets.choice(range(20000, 32000))}/0"


def database(name: str, folder: Path, *, is_prepared: bool) -> dict[str, Any]:
    """The database at the variable's address, else SQLite in the folder.

    `is_prepared`: PostgreSQL prepares statements. It cannot behind a pooler that shares connections.
    """
    url = env.str(name, default="") or f"sqlite:///{folder / 'dominds.sqlite3'}"
    if urlsplit(url).scheme not in {"sqlite", "postgres", "postgresql"}:
        raise ImproperlyConfigured(f"{name} must start with postgres:// or sqlite:///.")
    try:
        found: dict[str, Any] = environ.Env.db_url_config(url)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} cannot be read: {error}.") from error
    found |= {"ATOMIC_REQUESTS": False, "CONN_MAX_AGE": 0}
    if found["ENGINE"].endswith("sqlite3"):
        found["ENGINE"] = "dominds.sqlite3"
        found["OPTIONS"] = SQLITE_OPTIONS | found.get("OPTIONS", {})
        # Tests use a file, as real processes do: an in-memory database has other locking rules.
        found["TEST"] = {"NAME": str(folder / "test.sqlite3")}
    elif is_prepared:
        found["OPTIONS"] = PREPARED | found.get("OPTIONS", {})
    return found
