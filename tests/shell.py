"""Django's shell, kept open: a stack is asked many things, and each process of its own would load Django anew.

`Shell` is the tests' end. As a program it reads one piece of Python a line, as JSON, and answers what that printed.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import traceback
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


class Shell:
    """Runs Python beside a stack, in its environment. It ends with this process, whose end closes its input."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.shell"],
            cwd=ROOT,
            env={**environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, code: str) -> str:
        """What it printed. Raises RuntimeError with the traceback of what it raised."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(code) + "\n")
        self._process.stdin.flush()
        answer: dict[str, str] = json.loads(self._process.stdout.readline())
        if error := answer.get("error"):
            raise RuntimeError(error)
        return answer["printed"].strip()

    def close(self) -> None:
        self._process.communicate()


def serve() -> None:
    from django.core.management.commands.shell import Command
    from django.db import connections

    answers, sys.stdout = sys.stdout, sys.stderr
    names: dict[str, Any] = Command().get_namespace(verbosity=0)
    for line in sys.stdin:
        print(json.dumps(_answer(json.loads(line), dict(names))), file=answers, flush=True)
        # Another stack's migration, or its end, must not find this one holding the database.
        connections.close_all()


def _answer(code: str, names: dict[str, Any]) -> dict[str, str]:
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            exec(code, names)
    except Exception:
        return {"error": traceback.format_exc()}
    return {"printed": printed.getvalue()}


if __name__ == "__main__":
    import tests.django_loaded  # noqa: F401

    serve()
