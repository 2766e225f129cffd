from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any

import pytest

from dominds.supervisor import sweeper
from dominds.supervisor.log import Log
from dominds.supervisor.sweeper import Sweeper


@pytest.fixture
def terminal() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def found(tmp_path: Path, terminal: io.StringIO) -> Sweeper:
    return Sweeper(log=Log(folder=tmp_path, terminal=terminal))


def test_it_sweeps_again_and_again(found: Sweeper, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[float] = []
    wakings: list[float] = []
    settings.DOMINDS_SWEEP_SECONDS = 0.01
    monkeypatch.setattr(sweeper, "sweep_turns", lambda: passes.append(time.monotonic()) or "")
    monkeypatch.setattr(sweeper, "empty_trash", lambda: "")
    monkeypatch.setattr(sweeper, "wake_critic", lambda: wakings.append(time.monotonic()) or "")

    found.start()
    while len(passes) < 3:
        time.sleep(0.01)
    found.stop()
    found.join(5)

    assert not found.is_alive()
    assert len(wakings) == 1


def test_the_critic_is_woken_again_once_its_minute_is_over(
    found: Sweeper, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: list[str] = []
    settings.DOMINDS_SWEEP_SECONDS = 0.01
    for name in ("sweep_turns", "empty_trash", "wake_critic"):
        monkeypatch.setattr(sweeper, name, lambda name=name: passes.append(name) or "")
    monkeypatch.setattr(sweeper, "BEAT_SECONDS", 0.05)

    found.start()
    while passes.count("wake_critic") < 3:
        time.sleep(0.01)
    found.stop()
    found.join(5)

    assert passes[:3] == ["sweep_turns", "empty_trash", "wake_critic"]
    assert passes.count("empty_trash") == 1


def test_a_failure_is_said_once_and_survived(found: Sweeper, terminal: io.StringIO) -> None:
    def broken() -> str:
        raise ConnectionError("no Redis")

    found.attempt(broken)
    found.attempt(broken)

    assert terminal.getvalue() == "sweeper  | broken failed, and is tried again: no Redis\n"


@pytest.mark.django_db(transaction=True)
def test_with_nothing_due_it_says_nothing(found: Sweeper, terminal: io.StringIO) -> None:
    found.attempt(sweeper.sweep_turns)
    found.attempt(sweeper.empty_trash)

    assert terminal.getvalue() == ""
