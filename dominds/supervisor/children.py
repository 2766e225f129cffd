"""Child processes: started, watched, restarted when they die, and stopped in order.

Only the main thread may call this: on Linux a child dies with the *thread* that started it.

Preparing needs Django, some 100 MB; watching children needs a tenth of that. So `up` prepares, writes a `Plan`, and
replaces itself (exec) by `python -m dominds.supervisor`.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NoReturn

from dialogs.common.leash import LEASH
from dominds.supervisor import probes
from dominds.supervisor.lock import CannotStart, Database, GaveUp
from dominds.supervisor.log import Log

WINDOW_SECONDS = 60.0
MOST_DEATHS = 5
FIRST_DELAY_SECONDS = 0.5
POLL_SECONDS = 0.1
# How long a child may take to stop before it is killed.
GRACE_SECONDS = 4.0
# A longer line of a child's output is split.
LINE_BYTES = 64 * 1024


def recent(deaths: tuple[float, ...], *, now: float) -> tuple[float, ...]:
    """The deaths within the window."""
    return tuple(death for death in deaths if now - death < WINDOW_SECONDS)


def restart_delay(deaths: tuple[float, ...], *, now: float) -> float | None:
    """Seconds until it is started again after the last of these deaths, each time within the window twice as long;
    None at the fifth: it has died too often."""
    count = len(recent(deaths, now=now))
    return FIRST_DELAY_SECONDS * 2 ** max(0, count - 1) if count < MOST_DEATHS else None


@dataclass(frozen=True, kw_only=True)
class Child:
    """What to run. `address` answers once the child serves (empty: it has none). Output lines with a `noise` are
    dropped."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    address: str = ""
    # How long later children wait for this one to answer; 0: they do not wait.
    wait_seconds: float = 0.0
    noise: Sequence[str] = ()
    # Open files that it inherits under the same numbers.
    files: Sequence[int] = ()
    # Added to the process's niceness (up to 19): background work has low priority on a busy machine.
    nice: int = 0


@dataclass(kw_only=True)
class Run:
    """The state of a child."""

    child: Child
    process: subprocess.Popen[bytes]
    # Copies the process's output to the log, until the process ends.
    output: threading.Thread
    started: float
    answered: bool = False
    deaths: tuple[float, ...] = ()
    restart_at: float | None = None


class Children:
    def __init__(self, *, log: Log, run_dir: Path) -> None:
        self.log = log
        self.run_dir = run_dir
        self.runs: dict[str, Run] = {}
        run_dir.mkdir(parents=True, exist_ok=True)

    def start(self, child: Child) -> None:
        process, output = self.spawn(child)
        self.runs[child.name] = Run(child=child, process=process, output=output, started=time.monotonic())
        if child.wait_seconds:
            self.wait_for(child)

    def watch(self) -> None:
        """Check every child once: note those that answer, handle deaths, restart those that are due."""
        for run in self.runs.values():
            if run.restart_at is not None:
                self.restart(run)
            elif run.process.poll() is not None:
                self.handle_death(run)
            elif not run.answered:
                self.probe(run)

    def answers(self, name: str) -> bool:
        return self.runs[name].answered

    def wait_for(self, child: Child) -> None:
        """Watch until this child answers, since the next ones need it."""
        deadline = time.monotonic() + child.wait_seconds
        while not self.answers(child.name):
            if time.monotonic() > deadline:
                raise CannotStart(
                    f"{child.name} did not answer within {child.wait_seconds:.0f} s. The log above says why."
                )
            self.watch()
            time.sleep(POLL_SECONDS / 5)

    def stop(self) -> None:
        """Stop every child, the last started first: web, workers, demo, Valkey."""
        for run in reversed(self.runs.values()):
            with contextlib.suppress(ProcessLookupError):
                run.process.terminate()
            try:
                run.process.wait(GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                self.log.line(run.child.name, f"did not stop within {GRACE_SECONDS:.0f} s: killed")
            self.kill_group(run)
        self.runs.clear()

    def kill(self) -> None:
        """Kill all: Ctrl-C was pressed twice."""
        for run in self.runs.values():
            self.kill_group(run)

    def spawn(self, child: Child) -> tuple[subprocess.Popen[bytes], threading.Thread]:
        command = [sys.executable, "-I", "-S", LEASH, str(os.getpid()), *child.command]
        process = subprocess.Popen(
            command,
            env={**os.environ, "PYTHONUNBUFFERED": "1", "DOMINDS_IS_RESTARTED": "1", **child.environment},
            stdin=subprocess.DEVNULL,
            pass_fds=child.files,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # Not in the terminal's process group, so that Ctrl-C does not reach children: we stop them in order.
            start_new_session=True,
        )
        if child.nice:
            lower_priority(process.pid, child.nice)
        output = threading.Thread(target=self.copy_output, args=(child, process), daemon=True)
        output.start()
        # On a full disk the child runs without a pid file.
        with contextlib.suppress(OSError):
            self.pid_file(child).write_text(f"{process.pid}\n")
        return process, output

    def copy_output(self, child: Child, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout
        for line in iter(lambda: process.stdout.readline(LINE_BYTES), b""):  # type: ignore[union-attr]
            text = line.decode(errors="replace").rstrip()
            if text and not any(noise in text for noise in child.noise):
                self.log.line(child.name, text)

    def probe(self, run: Run) -> None:
        run.answered = not run.child.address or probes.answers(run.child.address)
        if run.answered and run.child.address:
            self.log.line(run.child.name, f"answers after {time.monotonic() - run.started:.1f} s")

    def handle_death(self, run: Run) -> None:
        now = time.monotonic()
        self.kill_group(run)
        run.deaths = (*recent(run.deaths, now=now), now)
        died = f"{run.child.name} {death_text(run.process.returncode)}"
        delay = restart_delay(run.deaths, now=now)
        if delay is None:
            often = f"{len(run.deaths)} times within {WINDOW_SECONDS:.0f} s"
            raise GaveUp(f"{died}; that was {often}. Dominds stops: the lines of {run.child.name} say why.")
        run.restart_at = now + delay
        self.log.line("up", f"{died}; it is started again in {delay:g} s")

    def restart(self, run: Run) -> None:
        now = time.monotonic()
        if run.restart_at is None or now < run.restart_at:
            return
        run.process, run.output = self.spawn(run.child)
        run.started, run.restart_at, run.answered = now, None, False
        self.log.line("up", f"{run.child.name} was started again as process {run.process.pid}")

    def kill_group(self, run: Run) -> None:
        """Kill what is left of the child's process group, such as a pool's processes, and log its last output."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(run.process.pid, signal.SIGKILL)
        run.process.wait()
        run.output.join(GRACE_SECONDS)
        self.pid_file(run.child).unlink(missing_ok=True)

    def pid_file(self, child: Child) -> Path:
        return self.run_dir / f"{child.name}.pid"


def lower_priority(pid: int, steps: int) -> None:
    """Called before the process has threads, which inherit it. Linux may schedule by session (autogroup): each child is
    one, so that is set too."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, 0) + steps)
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text(str(steps))


def death_text(status: int) -> str:
    if status < 0:
        return f"was killed by {signal.Signals(-status).name}"
    return f"ended with status {status}"


STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The children in the order of their start, and the line to print once the first web process answers."""

    data_dir: str
    database: Database
    children: Sequence[Child]
    welcome: str
    # Host and port of the web processes.
    listens: tuple[str, int] | None


def become_supervisor(plan: Plan) -> NoReturn:
    """Replace this process by `python -m dominds.supervisor`. The plan goes through a pipe, since it holds passwords
    and everyone can read a command line. No lock is held meanwhile, and no child runs."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as file:
        json.dump(asdict(plan), file)
    for number in (reading, *(number for child in plan.children for number in child.files)):
        os.set_inheritable(number, True)
    # Signals that come now are delivered when the other program unblocks them.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    os.execv(sys.executable, [sys.executable, "-m", "dominds.supervisor", str(reading)])  # noqa: S606


def read_plan(number: int) -> Plan:
    with os.fdopen(number) as file:
        given = json.load(file)
    children = [Child(**child) for child in given.pop("children")]
    return Plan(children=children, database=Database(**given.pop("database")), **given)


def stop_on_signals() -> None:
    """Turn every stop signal into a KeyboardInterrupt in the main thread."""
    for number in STOPS:
        # Under `nohup`, SIGHUP stays ignored.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
