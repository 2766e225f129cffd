"""Children as real processes: short Python programs instead of servers."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dialogs.common.leash import watch
from dominds.supervisor.children import Child, Children, death_text, restart_delay
from dominds.supervisor.lock import CannotStart, GaveUp
from dominds.supervisor.log import Log
from tests.environment import free_port

SLEEP = "import time; time.sleep(60)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf'); time.sleep(60)"


def python(code: str, *, name: str = "child", port: int = 0, wait_seconds: float = 0) -> Child:
    address = f"http://127.0.0.1:{port}/" if port else ""
    return Child(name=name, command=(sys.executable, "-c", code), address=address, wait_seconds=wait_seconds)


@pytest.fixture
def terminal() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def children(tmp_path: Path, terminal: io.StringIO) -> Iterator[Children]:
    found = Children(log=Log(folder=tmp_path / "log", terminal=terminal), run_dir=tmp_path / "run")
    yield found
    found.kill()


def watch_until(children: Children, happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not happened():
        assert time.monotonic() < deadline
        children.watch()
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_output_appears_under_the_childs_name(children: Children, terminal: io.StringIO) -> None:
    children.start(python("print('hello'); import time; time.sleep(60)"))

    watch_until(children, lambda: "hello" in terminal.getvalue())

    assert terminal.getvalue() == "child    | hello\n"


def test_a_childs_process_can_be_found_by_its_name(children: Children, tmp_path: Path) -> None:
    children.start(python(SLEEP))

    assert is_alive(int((tmp_path / "run" / "child.pid").read_text()))


def test_a_child_stands_back_as_far_as_it_is_told(children: Children) -> None:
    children.start(replace(python(SLEEP), nice=5))
    pid = children.runs["child"].process.pid

    assert os.getpriority(os.PRIO_PROCESS, pid) == os.getpriority(os.PRIO_PROCESS, 0) + 5


def test_a_child_that_dies_is_started_again_and_said_so(children: Children, terminal: io.StringIO) -> None:
    children.start(python(SLEEP))
    first = children.runs["child"].process.pid

    os.kill(first, signal.SIGKILL)
    watch_until(children, lambda: children.runs["child"].process.pid != first)

    assert "child was killed by SIGKILL; it is started again in 0.5 s" in terminal.getvalue()
    assert "child was started again as process" in terminal.getvalue()


def test_a_child_that_keeps_dying_is_given_up(children: Children, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dominds.supervisor.children.FIRST_DELAY_SECONDS", 0.001)
    children.start(python("raise SystemExit(3)"))

    with pytest.raises(GaveUp, match=r"child ended with status 3; that was 5 times within 60 s"):
        watch_until(children, lambda: False)


def test_a_child_outlives_the_terminal_and_the_disk_that_its_words_go_to(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "dominds.log").symlink_to("/dev/full")
    reading, writing = os.pipe()
    os.close(reading)
    with contextlib.suppress(OSError), os.fdopen(writing, "w") as terminal:
        children = Children(log=Log(folder=tmp_path / "log", terminal=terminal), run_dir=tmp_path / "run")

        children.start(python("print('x' * 500_000 + '\\n' * 5_000); import os; os._exit(7)"))
        run = children.runs["child"]

        assert run.process.wait(20) == 7
    run.output.join(5)
    assert not run.output.is_alive()


def test_a_full_disk_keeps_no_child_from_starting(children: Children, tmp_path: Path) -> None:
    (tmp_path / "run" / "child.pid").symlink_to("/dev/full")

    children.start(python(SLEEP))

    assert children.runs["child"].process.poll() is None


def test_children_stop_in_the_reverse_order_of_their_start(children: Children, terminal: io.StringIO) -> None:
    code = (
        "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(print('bye', flush=True)));"
        "print('up'); time.sleep(60)"
    )
    for name in ("first", "second"):
        children.start(python(code, name=name))
    watch_until(children, lambda: terminal.getvalue().count("| up") == 2)

    children.stop()

    lines = terminal.getvalue().splitlines()
    assert lines.index("second   | bye") < lines.index("first    | bye")


def test_a_child_that_does_not_stop_is_killed(
    children: Children, terminal: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dominds.supervisor.children.GRACE_SECONDS", 0.2)
    children.start(python(STUBBORN))
    pid = children.runs["child"].process.pid
    watch_until(children, lambda: "deaf" in terminal.getvalue())

    children.stop()

    assert not is_alive(pid)
    assert "did not stop" in terminal.getvalue()


def test_whoever_starts_a_child_that_is_awaited_waits_until_it_answers(children: Children) -> None:
    port = free_port()
    command = (sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1")

    children.start(Child(name="child", command=command, address=f"http://127.0.0.1:{port}/", wait_seconds=20))

    assert children.answers("child")


def test_waiting_for_a_child_that_never_answers_is_an_error(children: Children) -> None:
    with pytest.raises(CannotStart, match="child did not answer"):
        children.start(python(SLEEP, port=free_port(), wait_seconds=0.2))


def test_a_child_dies_with_its_parent_however_that_dies(tmp_path: Path) -> None:
    program = f"""
import pathlib, sys, time
from dominds.supervisor.children import Child, Children
from dominds.supervisor.log import Log
folder = pathlib.Path({str(tmp_path)!r})
children = Children(log=Log(folder=folder, terminal=sys.stderr), run_dir=folder)
children.start(Child(name="child", command=(sys.executable, "-c", {SLEEP!r})))
time.sleep(60)
"""
    parent = subprocess.Popen([sys.executable, "-c", program])
    pid_file = tmp_path / "child.pid"
    wait_for(lambda: pid_file.exists() and bool(pid_file.read_text()))
    pid = int(pid_file.read_text())
    # The command, not the leash that becomes it.
    wait_for(lambda: "leash.py" not in Path(f"/proc/{pid}/cmdline").read_text())

    parent.kill()
    parent.wait()

    wait_for(lambda: not is_alive(pid))


def wait_for(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_where_the_kernel_does_not_help_the_leash_ends_with_its_command() -> None:
    assert watch(os.getppid(), [sys.executable, "-c", "raise SystemExit(7)"]) == 7


def test_where_the_kernel_does_not_help_the_leash_kills_an_orphan() -> None:
    nobody = -1

    assert watch(nobody, [sys.executable, "-c", SLEEP]) == -signal.SIGKILL


@pytest.mark.parametrize(("status", "words"), [(-9, "was killed by SIGKILL"), (2, "ended with status 2")])
def test_a_death_is_told_in_words(status: int, words: str) -> None:
    assert death_text(status) == words


@pytest.mark.parametrize(
    ("deaths", "expected"),
    [
        ((100.0,), 0.5),
        ((99.0, 100.0), 1.0),
        ((98.0, 99.0, 100.0), 2.0),
        ((97.0, 98.0, 99.0, 100.0), 4.0),
        # The fifth within a minute is the last.
        ((96.0, 97.0, 98.0, 99.0, 100.0), None),
        # What lies a minute back is forgiven.
        ((1.0, 2.0, 3.0, 4.0, 100.0), 0.5),
        ((40.0, 100.0), 0.5),
    ],
)
def test_each_death_within_a_minute_doubles_the_wait(deaths: tuple[float, ...], expected: float | None) -> None:
    assert restart_delay(deaths, now=100.0) == expected
