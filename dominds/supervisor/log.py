"""One log for all processes: each line with its child's name, on the terminal and in a file.

The terminal is standard error; standard output gets only the line that `up` prints when it is ready.

Writing never fails and never blocks, since a child that writes would wait with it. Lines are lost that a full disk or a
closed terminal does not take.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import select
import threading
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TextIO

NAME_WIDTH = 8
RESET = "\x1b[0m"
COLOURS = ("\x1b[36m", "\x1b[33m", "\x1b[35m", "\x1b[32m", "\x1b[34m")
FILE_BYTES, FILES_KEPT = 5_000_000, 5
# A longer line is cut on the terminal, since a pipe may take no more at once; the file has all of it.
TERMINAL_CHARS = 1_000
# The secret half of a one-time sign-in link.
ONE_TIME = re.compile(r"(/welcome/[^/\s]{1,40}/)[^/\s\"'?]+")


def without_tokens(text: str) -> str:
    return ONE_TIME.sub(r"\1…", text)


class WithoutTokens(logging.Formatter):
    """Removes the secrets of one-time sign-in links from what is logged."""

    def format(self, record: logging.LogRecord) -> str:
        return without_tokens(super().format(record))


class LogFile(RotatingFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """The line is lost. If the file is closed, the next line opens it again."""
        if self.stream and self.stream.closed:
            self.stream = None


class Log:
    def __init__(self, *, folder: Path, terminal: TextIO) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.terminal = terminal
        self.coloured = terminal.isatty() and "NO_COLOR" not in os.environ
        self.colours: dict[str, str] = {}
        self.lock = threading.Lock()
        self.file = LogFile(folder / "dominds.log", maxBytes=FILE_BYTES, backupCount=FILES_KEPT, encoding="utf-8")
        self.file.setFormatter(WithoutTokens("{asctime} {name:<8} | {message}", style="{"))

    def line(self, name: str, text: str) -> None:
        """Write one line. Called from the thread of every child's output."""
        record = logging.LogRecord(name, logging.INFO, "", 0, text, None, None)
        with self.lock:
            self.file.emit(record)
            self._show(f"{self.prefix(name)} {without_tokens(text)[:TERMINAL_CHARS]}\n")

    def _show(self, line: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            if _takes_more(self.terminal):
                self.terminal.write(line)
                self.terminal.flush()

    def prefix(self, name: str) -> str:
        padded = f"{name:<{NAME_WIDTH}} |"
        if not self.coloured:
            return padded
        colour = self.colours.setdefault(name, COLOURS[len(self.colours) % len(COLOURS)])
        return f"{colour}{padded}{RESET}"

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.file.close()


def _takes_more(terminal: TextIO) -> bool:
    """Can it be written to now without blocking?"""
    try:
        return bool(select.select([], [terminal.fileno()], [], 0)[1])
    except io.UnsupportedOperation:
        return True


class ToLog(logging.Handler):
    """Sends the supervisor's own logging records to the log."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self.log = log

    def emit(self, record: logging.LogRecord) -> None:
        self.log.line("up", record.getMessage())
