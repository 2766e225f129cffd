"""What the flags of `manage.py up` come to, without starting anything."""

from __future__ import annotations

import os

import pytest
from django.core.management import call_command

from dominds.management.commands import up as command
from dominds.supervisor.run import Options


@pytest.mark.parametrize(("flags", "level"), [((), "WARNING"), (("--debug",), "DEBUG")])
def test_debug_lets_the_processes_log_more(flags: tuple[str, ...], level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    levels: list[str] = []

    def started(_options: Options) -> None:
        levels.append(os.environ["DOMINDS_LOG_LEVEL"])

    monkeypatch.setenv("DOMINDS_LOG_LEVEL", "WARNING")
    monkeypatch.setattr(command, "up", started)

    call_command("up", *flags)

    assert levels == [level]
