"""The real tiny model in a server of its own, for stand-ins to put in front."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def real_llm(*, context: int = 4096) -> Iterator[str]:
    """The address of llama.cpp's own server, while it runs."""
    threads = max(1, (os.cpu_count() or 1) - 1)
    command = [sys.executable, "-m", "dominds.supervisor.llama_server", "--port", "0"]
    command += ["--context", str(context), "--threads", str(threads)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield _address(process)
        finally:
            process.terminate()


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.search(r"http://127\.0\.0\.1:\d+", line):
            return found[0]
    raise RuntimeError("The model's server did not start.")
