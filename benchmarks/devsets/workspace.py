"""A directory in which a scripted agent really works: commands are run there, and what they print is its transcript.

What differs from run to run (the directory's name, seconds, addresses) is replaced, so that the same seed writes
the same case.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

_SECONDS = re.compile(r"\bin \d+\.\d+s\b")
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
_SHOWN = "/workspace"


class Workspace:
    """Files under a directory. `run` gives what a shell prints there, standard error included."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def read(self, path: str) -> str:
        return (self.root / path).read_text()

    def run(self, command: str) -> str:
        python = Path(sys.executable)
        environment = {
            "PATH": f"{python.parent}:{os.defpath}",
            "LC_ALL": "C",
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_ADDOPTS": "-p no:cacheprovider",
            "COLUMNS": "80",
        }
        done = subprocess.run(
            ["/bin/sh", "-c", command], cwd=self.root, env=environment, text=True, timeout=60, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        return self._settled(done.stdout)

    def _settled(self, text: str) -> str:
        text = text.replace(str(self.root.resolve()), _SHOWN).replace(str(self.root), _SHOWN)
        text = text.replace(sys.base_prefix, "/usr").replace(sys.prefix, "/usr")
        return _ADDRESS.sub("0x7f10c0de", _SECONDS.sub("in 0.21s", text))
