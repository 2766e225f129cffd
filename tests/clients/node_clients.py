"""Clients of Node's world: OpenAI's own, and the AI SDK. Small programs in `node/`, asked through stdin and stdout.

Where there is no Node, or its packages cannot be fetched, their tests are skipped and say what to install.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.clients.client import Answer, Wish

FOLDER = Path(__file__).parent / "node"
INSTALLED = FOLDER / "node_modules" / ".package-lock.json"
FETCH_SECONDS = 180
# Far above what a wish takes; a program that hangs ends its test and not the run.
WISH_SECONDS = 120


@dataclass(frozen=True)
class NodeClient:
    program: str
    url: str
    key: str

    def ask(self, wish: Wish) -> Answer:
        packages_or_skip()
        given = json.dumps({**asdict(wish), "url": self.url, "key": self.key})
        ran = subprocess.run(
            ["node", self.program], cwd=FOLDER, input=given, capture_output=True, text=True, timeout=WISH_SECONDS
        )
        assert ran.returncode == 0, ran.stderr
        return Answer(**json.loads(ran.stdout))


def packages_or_skip() -> None:
    missing = _missing()
    if missing:
        pytest.skip(missing)


@cache
def _missing() -> str:
    """Why the programs cannot run; nothing where they can. What the lock file says is fetched once."""
    for program in ("node", "npm"):
        if not shutil.which(program):
            return f"{program} is not installed. Node 18 or newer has it: on Debian, apt install nodejs npm."
    if INSTALLED.exists() and INSTALLED.stat().st_mtime >= (FOLDER / "package-lock.json").stat().st_mtime:
        return ""
    try:
        ran = subprocess.run(
            ["npm", "ci", "--no-audit", "--no-fund"], cwd=FOLDER, capture_output=True, text=True, timeout=FETCH_SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"`npm ci` in {FOLDER} did not end within {FETCH_SECONDS} s: is the registry reachable?"
    return f"`npm ci` in {FOLDER} failed, run it by hand: {ran.stderr[-300:]}" if ran.returncode else ""
