"""A SQLite database with every table, for tests and stacks to begin with.

To migrate takes a processor eight seconds, longer than all else of a start. So it is done once, by whichever process
comes first, and again only after a change of a migration or of a package.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from tests.shell import ROOT

FOLDER = ROOT / ".pytest_cache" / "migrated"
DATABASE = "dominds.sqlite3"


@cache
def migrated() -> Path:
    FOLDER.mkdir(parents=True, exist_ok=True)
    folder = FOLDER / _state()
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            _make(folder)
    return folder / DATABASE


def _state() -> str:
    """Of all that says which tables there are."""
    sources = (*sorted(ROOT.glob("*/migrations/*.py")), ROOT / "requirements" / "base.txt")
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]


def _make(folder: Path) -> None:
    for outdated in FOLDER.glob("*/"):
        shutil.rmtree(outdated)
    made = tempfile.mkdtemp(dir=FOLDER)
    inherited = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    environment = {**inherited, "DOMINDS_DATA_DIR": made}
    subprocess.run([sys.executable, "manage.py", "migrate", "-v", "0"], cwd=ROOT, env=environment, check=True)
    Path(made).rename(folder)
