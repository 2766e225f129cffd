from __future__ import annotations

import io
import logging
from pathlib import Path

import pytest

from dominds.supervisor.log import Log, ToLog


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_lines_reach_the_terminal_and_the_file(tmp_path: Path) -> None:
    terminal = io.StringIO()
    log = Log(folder=tmp_path, terminal=terminal)

    log.line("web", "answers")

    assert terminal.getvalue() == "web      | answers\n"
    assert (tmp_path / "dominds.log").read_text().endswith("web      | answers\n")


def test_names_have_colours_on_a_terminal_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    log = Log(folder=tmp_path, terminal=Terminal())

    assert log.prefix("web").startswith("\x1b[")
    assert log.prefix("web") != log.prefix("turns").replace("turns", "web  ")


def test_somebody_who_wants_no_colour_gets_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    assert Log(folder=tmp_path, terminal=Terminal()).prefix("web") == "web      |"


def test_the_file_does_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dominds.supervisor.log.FILE_BYTES", 100)
    log = Log(folder=tmp_path, terminal=io.StringIO())

    for number in range(5):
        log.line("web", f"{number} " + "x" * 60)

    assert (tmp_path / "dominds.log").stat().st_size <= 100
    assert (tmp_path / "dominds.log.1").exists()


def test_what_the_supervisor_logs_goes_there_too(tmp_path: Path) -> None:
    terminal = io.StringIO()
    handler = ToLog(Log(folder=tmp_path, terminal=terminal))

    handler.emit(logging.LogRecord("dialogs", logging.WARNING, "", 0, "%s is away", ("Redis",), None))

    assert terminal.getvalue() == "up       | Redis is away\n"
