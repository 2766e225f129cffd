"""One readable log of every process: each line under its child's name, on the terminal and in a file.

The terminal is standard error: standard output holds the one line that `up` prints when it is ready.
"""

from __future__ import annotations

import logging
import os
import threading
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TextIO

NAME_WIDTH = 8
RESET = "\x1b[0m"
COLOURS = ("\x1b[36m", "\x1b[33m", "\x1b[35m", "\x1b[32m", "\x1b[34m")
FILE_BYTES, FILES_KEPT = 5_000_000, 5


class Log:
    def __init__(self, *, folder: Path, terminal: TextIO) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.terminal = terminal
        self.coloured = terminal.isatty() and "NO_COLOR" not in os.environ
        self.colours: dict[str, str] = {}
        self.lock = threading.Lock()
        self.file = RotatingFileHandler(
            folder / "dominds.log", maxBytes=FILE_BYTES, backupCount=FILES_KEPT, encoding="utf-8"
        )
        self.file.setFormatter(logging.Formatter("{asctime} {name:<8} | {message}", style="{"))

    def line(self, name: str, text: str) -> None:
        """Write one line. Called from the thread of every child's output."""
        record = logging.LogRecord(name, logging.INFO, "", 0, text, None, None)
        with self.lock:
            self.file.emit(record)
            self.terminal.write(f"{self.prefix(name)} {text}\n")
            self.terminal.flush()

    def prefix(self, name: str) -> str:
        padded = f"{name:<{NAME_WIDTH}} |"
        if not self.coloured:
            return padded
        colour = self.colours.setdefault(name, COLOURS[len(self.colours) % len(COLOURS)])
        return f"{colour}{padded}{RESET}"

    def close(self) -> None:
        self.file.close()


class ToLog(logging.Handler):
    """Sends the supervisor's own logging records to the log."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self.log = log

    def emit(self, record: logging.LogRecord) -> None:
        self.log.line("up", record.getMessage())
