"""The real small model behind llama.cpp's own server, for as long as it is needed, and what it reports of a prompt."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.request import Request, urlopen

MODEL = "smollm2-135m"
_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")


@contextmanager
def server(*, context: int) -> Iterator[str]:
    """Its address. `context` is its window in tokens."""
    threads = max(1, (os.cpu_count() or 1) - 1)
    command = [sys.executable, "-m", "dominds.supervisor.llama_server", "--port", "0"]
    command += ["--context", str(context), "--threads", str(threads)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield _address(process)
        finally:
            process.terminate()


def _address(process: subprocess.Popen[str]) -> str:
    for line in process.stdout or ():
        if found := _ADDRESS.search(line):
            return found[0]
    raise RuntimeError("the demo model's server did not start")


def prompt_tokens(address: str, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()) -> int:
    """What the server reports of one generation; it is asked for a single token."""
    body = {"messages": list(messages), "max_tokens": 1, **({"tools": list(tools)} if tools else {})}
    headers = {"Content-Type": "application/json"}
    asked = Request(f"{address}/v1/chat/completions", json.dumps(body).encode(), headers)
    with urlopen(asked, timeout=120) as answer:
        reported: int = json.load(answer)["usage"]["prompt_tokens"]
    return reported
