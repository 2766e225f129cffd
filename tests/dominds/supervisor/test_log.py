from __future__ import annotations

import contextlib
import io
import logging
import os
import threading
from logging.config import DictConfigurator  # type: ignore[attr-defined]
from pathlib import Path

import pytest
from django.conf import settings

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


def test_a_full_disk_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "dominds.log").symlink_to("/dev/full")
    with contextlib.suppress(OSError), Path("/dev/full").open("w") as terminal:
        log = Log(folder=tmp_path, terminal=terminal)

        for number in range(500):
            log.line("web", f"{number} " + "x" * 500)
        log.close()
    (tmp_path / "dominds.log").unlink()
    log.line("web", "there is room again")

    assert "there is room again" in (tmp_path / "dominds.log").read_text()


def test_a_terminal_that_is_gone_stops_nobody(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with contextlib.suppress(OSError), os.fdopen(writing, "w") as terminal:
        log = Log(folder=tmp_path, terminal=terminal)

        log.line("web", "one")
        log.line("web", "two")

    assert "two" in (tmp_path / "dominds.log").read_text()


def test_a_terminal_that_nobody_reads_stops_nobody(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as terminal, os.fdopen(reading) as read:
        log = Log(folder=tmp_path, terminal=terminal)
        writer = threading.Thread(target=lambda: [log.line("web", "x" * 900) for _ in range(500)], daemon=True)

        writer.start()
        writer.join(10)

        assert not writer.is_alive()
        assert (tmp_path / "dominds.log").read_text().count("\n") == 500
        assert read.readline().startswith("web      | xxx")


def test_one_time_links_are_not_logged(tmp_path: Path) -> None:
    terminal = io.StringIO()
    log = Log(folder=tmp_path, terminal=terminal)

    log.line("web", 'WARNING django.request: Gone: /welcome/Mw/digvqw-0123456789abcdef/ "x"')

    said = terminal.getvalue() + (tmp_path / "dominds.log").read_text()
    assert "digvqw" not in said
    assert said.count("Gone: /welcome/Mw/…/") == 2


def test_a_process_without_a_supervisor_does_not_log_them_either() -> None:
    formatter = DictConfigurator(settings.LOGGING).configure_formatter(dict(settings.LOGGING["formatters"]["line"]))
    asked = ("/welcome/Mw/digvqw-0123/",)
    record = logging.LogRecord("django.request", logging.WARNING, "", 0, "Gone: %s", asked, None)

    assert formatter.format(record) == "WARNING django.request: Gone: /welcome/Mw/…/"
