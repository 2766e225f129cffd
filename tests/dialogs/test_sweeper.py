from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import pytest
from celery import Celery
from celery.signals import worker_ready, worker_shutting_down

from dialogs import sweeper, tasks
from dialogs.llms import preload
from dialogs.sweeper import Sweeper


@pytest.fixture
def found() -> Sweeper:
    return Sweeper()


def test_it_sweeps_again_and_again(found: Sweeper, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[float] = []
    wakings: list[float] = []
    settings.DOMINDS_SWEEP_SECONDS = 0.01
    monkeypatch.setattr(sweeper, "sweep_turns", lambda _drive: passes.append(time.monotonic()) or "")
    monkeypatch.setattr(sweeper, "empty_trash", lambda: "")
    monkeypatch.setattr(sweeper, "wake_critic", lambda: wakings.append(time.monotonic()) or "")

    found.start()
    while len(passes) < 3:
        time.sleep(0.01)
    found.stop()
    found.join(5)

    assert not found.is_alive()
    assert len(wakings) == 1


def test_after_a_sweep_that_failed_those_who_hold_a_lease_come_first(
    found: Sweeper, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    did: list[str] = []
    settings.DOMINDS_SWEEP_SECONDS = 0.01

    def is_there(name: str, *, after: int) -> str:
        did.append(name)
        if len(did) <= after:
            raise ConnectionError("the database is away")
        return ""

    monkeypatch.setattr(sweeper, "sweep_turns", lambda _drive: is_there("sweep", after=1))
    monkeypatch.setattr(sweeper, "find_database", lambda: is_there("look", after=2))
    for name in ("empty_trash", "wake_critic"):
        monkeypatch.setattr(sweeper, name, lambda: "")

    found.start()
    while len(did) < 5:
        time.sleep(0.01)
    found.stop()
    found.join(5)

    assert did[:5] == ["sweep", "look", "look", "sweep", "sweep"]


def test_the_critic_is_woken_again_once_its_minute_is_over(
    found: Sweeper, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: list[str] = []
    settings.DOMINDS_SWEEP_SECONDS = 0.01
    for name in ("sweep_turns", "empty_trash", "wake_critic"):
        monkeypatch.setattr(sweeper, name, lambda *_drive, name=name: passes.append(name) or "")
    monkeypatch.setattr(sweeper, "BEAT_SECONDS", 0.05)

    found.start()
    while passes.count("wake_critic") < 3:
        time.sleep(0.01)
    found.stop()
    found.join(5)

    assert passes[:3] == ["sweep_turns", "empty_trash", "wake_critic"]
    assert passes.count("empty_trash") == 1


def test_a_failure_is_said_once_and_survived(found: Sweeper, caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> str:
        raise ConnectionError("no Redis")

    with caplog.at_level("INFO"):
        found.attempt(broken)
        found.attempt(broken)

    assert caplog.messages == ["broken failed, and is tried again: no Redis"]


@pytest.mark.django_db(transaction=True)
def test_with_nothing_due_it_says_nothing(found: Sweeper, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        found.attempt(sweeper.sweep_turns)
        found.attempt(sweeper.empty_trash)

    assert caplog.messages == []


@pytest.mark.parametrize(
    ("queue", "begun"),
    [("turns", ["sweeper begins", "a client is loaded"]), ("compaction", ["the engine is loaded"]), ("others", [])],
)
def test_what_a_worker_does_beside_its_tasks_goes_with_its_queue(
    queue: str, begun: list[str], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.DOMINDS_EMBEDDINGS_IDLE_SECONDS = 0
    did: list[str] = []
    monkeypatch.setattr(Sweeper, "start", lambda _self: did.append("sweeper begins"))
    monkeypatch.setattr(preload, "preload_soon", lambda: did.append("a client is loaded"))
    monkeypatch.setattr(tasks, "load_engine_soon", lambda: did.append("the engine is loaded"))

    worker_ready.send(sender=consumer_of(queue))

    assert did == begun


def test_a_worker_that_stops_sweeps_no_more_and_hands_its_turns_over(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Sweeper] = []
    later: list[object] = []
    monkeypatch.setattr(tasks, "run_later", lambda _seconds, work: later.append(work))
    # It would end the tests.
    monkeypatch.setattr(tasks, "end_when_idle", lambda: None)
    settings.DOMINDS_SWEEP_SECONDS = 60
    monkeypatch.setattr(preload, "preload_soon", lambda: None)
    monkeypatch.setattr(tasks, "Sweeper", lambda _drive: begun.append(Sweeper()) or begun[-1])
    worker_ready.send(sender=consumer_of("turns"))
    assert begun[0].is_alive()

    worker_shutting_down.send(sender="turns@here")

    begun[0].join(5)
    assert not begun[0].is_alive()
    assert later == [tasks.hand_over]


@dataclass(eq=False)
class Consumer:
    """What Celery tells of, as far as it is read."""

    app: Celery


def consumer_of(queue: str) -> Consumer:
    app = Celery("tests", set_as_current=False)
    app.amqp.queues.select([queue])
    return Consumer(app)
