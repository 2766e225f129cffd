"""The process that `up` becomes, with short programs as children: a plan goes in, and it is followed to its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dominds.supervisor import lock
from dominds.supervisor.children import Child, Plan
from dominds.supervisor.lock import Database

BECOME = """
import os, signal, sys
from dominds.supervisor.children import Child
from dominds.supervisor.lock import Database
from dominds.supervisor.children import Plan, become_supervisor
{before}
become_supervisor({plan!r})
"""
ASLEEP = "import time; print('awake', flush=True); time.sleep(60)"
LIVES_ON = "import time; time.sleep(1); print('still here', flush=True); time.sleep(60)"
LARGE = ("django", "celery", "redis", "asyncio", "ssl", "psycopg")


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return Plan(
        data_dir=str(tmp_path),
        database=Database(file=str(tmp_path / "database")),
        children=(Child(name="child", command=(sys.executable, "-c", ASLEEP)),),
        welcome="It runs.",
        listens=None,
    )


@pytest.fixture
def become(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a process that becomes the watcher of a plan."""
    begun: list[subprocess.Popen[str]] = []

    def of(plan: Plan, *, before: str = "") -> subprocess.Popen[str]:
        command = [sys.executable, "-c", BECOME.format(plan=plan, before=before)]
        with (tmp_path / "stderr").open("w") as stderr:
            begun.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True))
        return begun[-1]

    yield of
    for process in begun:
        process.kill()
        process.communicate()


def said(tmp_path: Path) -> str:
    return (tmp_path / "stderr").read_text()


def wait_for(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_process_stays_the_same_and_says_that_it_runs(
    plan: Plan, become: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    process = become(plan)
    assert process.stdout

    assert process.stdout.readline() == "It runs.\n"

    wait_for(lambda: "child    | awake" in said(tmp_path))
    assert lock.is_used(tmp_path)
    child = (tmp_path / "run" / "child.pid").read_text().strip()
    assert Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[1] == str(process.pid)


def test_it_stops_when_it_is_told_to(plan: Plan, become: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    process = become(plan)
    wait_for(lambda: "awake" in said(tmp_path))

    process.terminate()

    assert process.wait(20) == 0
    assert "up       | stopping" in said(tmp_path)
    assert not lock.is_used(tmp_path)


def test_whoever_tells_it_to_stop_while_it_becomes_the_other_is_heard(
    plan: Plan, become: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    block_and_ask = "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM]); os.kill(os.getpid(), signal.SIGTERM)"

    process = become(plan, before=block_and_ask)

    assert process.wait(20) == 0
    assert "awake" not in said(tmp_path)


def test_a_data_folder_that_somebody_took_meanwhile_is_left_alone(
    plan: Plan, become: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    with lock.sole_user(tmp_path, purpose="trying"):
        assert become(plan).wait(20) == 1

    assert said(tmp_path).startswith("Dominds already runs on ")


def test_it_runs_on_where_nobody_reads_that_it_runs(
    plan: Plan, become: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    unread = "reading, writing = os.pipe(); os.dup2(writing, 1); os.close(reading)"
    stayed = replace(plan, children=(Child(name="child", command=(sys.executable, "-c", LIVES_ON)),))

    process = become(stayed, before=unread)
    wait_for(lambda: "still here" in said(tmp_path) or process.poll() is not None)

    assert process.poll() is None


def test_what_watches_loads_nothing_large() -> None:
    code = f"import sys, dominds.supervisor.__main__; print([name for name in {LARGE} if name in sys.modules])"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ})

    assert done.stdout == "[]\n"


def test_a_hangup_that_is_ignored_stays_ignored(
    plan: Plan, become: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    """As under `nohup`."""
    process = become(plan, before="signal.signal(signal.SIGHUP, signal.SIG_IGN)")
    wait_for(lambda: "awake" in said(tmp_path))

    process.send_signal(signal.SIGHUP)

    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
