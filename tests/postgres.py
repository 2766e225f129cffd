"""`python -m tests.postgres COMMAND...`: run it with DATABASE_URL at a PostgreSQL that lives as long as it does.

The server is the machine's own; Debian's is installed when it is missing and we may.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.environment import free_port

OWNER = "dominds"
# Nothing here must survive a power cut.
OPTIONS = "-c fsync=off -c synchronous_commit=off -c full_page_writes=off -c max_connections=200"


def programs() -> Path:
    """The folder with initdb and pg_ctl: on the path, or where Debian puts the newest."""
    on_path = shutil.which("pg_ctl")
    if on_path:
        return Path(on_path).resolve().parent
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"), key=lambda path: int(path.parts[-3]))
    if debian:
        return debian[-1].parent
    if os.geteuid() or not shutil.which("apt-get"):
        sys.exit("PostgreSQL's server programs are missing. Install them, or put pg_ctl on PATH.")
    subprocess.run(["apt-get", "update", "-qq"], check=True)
    subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", "postgresql"], check=True)
    return programs()


def run(program: Path, *arguments: str) -> None:
    """As the user postgres when we are root, because the server refuses root."""
    command = [str(program), *arguments]
    if os.geteuid() == 0:
        command = ["runuser", "-u", "postgres", "--", *command]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/")


@contextlib.contextmanager
def server() -> Iterator[str]:
    """A new, empty database; its address."""
    found, port = programs(), free_port()
    with tempfile.TemporaryDirectory(prefix="dominds-postgres-") as name:
        folder = Path(name)
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
        data = str(folder / "data")
        run(found / "initdb", "--pgdata", data, "--username", OWNER, "--auth=trust", "--encoding=UTF8", "--no-sync")
        options = f"{OPTIONS} -p {port} -k {folder} -c listen_addresses=127.0.0.1"
        run(found / "pg_ctl", "start", "--wait", "-D", data, "-o", options, "-l", str(folder / "log"))
        try:
            run(found / "createdb", "-h", "127.0.0.1", "-p", str(port), "-U", OWNER, OWNER)
            yield f"postgres://{OWNER}@127.0.0.1:{port}/{OWNER}"
        finally:
            run(found / "pg_ctl", "stop", "--wait", "-D", data, "-m", "immediate")


if __name__ == "__main__":
    with server() as url:
        status = subprocess.run(sys.argv[1:], env={**os.environ, "DATABASE_URL": url}, check=False).returncode
    sys.exit(status)
