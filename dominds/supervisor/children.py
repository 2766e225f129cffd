"""Children: processes that are started, watched, started again when they die, and stopped in order.

Only the main thread may call this: on Linux a child dies with the *thread* that started it.

To prepare takes Django, some 100 MB; to start children, watch and stop them takes a tenth of that. So `up` prepares,
writes down in a `Plan` what is to run, and becomes `python -m dominds.supervisor`: the same process, with other code in
it.
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
# How long one child may take over its goodbye before it is killed.
GRACE_SECONDS = 4.0
# The longest line that is taken from a child; a longer one is cut into lines.
LINE_BYTES = 64 * 1024


@dataclass(frozen=True, kw_only=True)
class Restart:
    """Start it again after the delay."""

    delay: float


@dataclass(frozen=True, kw_only=True)
class GiveUp:
    """The process died too often."""

    deaths: int


def recent(deaths: tuple[float, ...], *, now: float) -> tuple[float, ...]:
    """The deaths that still count."""
    return tuple(death for death in deaths if now - death < WINDOW_SECONDS)


def after_death(deaths: tuple[float, ...], *, now: float) -> Restart | GiveUp:
    """What to do about the last of these deaths: each within the window doubles the wait, the fifth is the last."""
    count = len(recent(deaths, now=now))
    if count >= MOST_DEATHS:
        return GiveUp(deaths=count)
    return Restart(delay=FIRST_DELAY_SECONDS * 2 ** max(0, count - 1))


@dataclass(frozen=True, kw_only=True)
class Child:
    """What to run. `address` answers once it serves (empty: nobody can ask it); lines with a `noise` are left out."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    address: str = ""
    # So many seconds whatever is started after it waits until it answers.
    awaited: float = 0.0
    noise: Sequence[str] = ()
    # Open files that it inherits under the same numbers.
    files: Sequence[int] = ()
    # How far it stands back where more is to be done than the machine can do at once, up to 19: background work does.
    nice: int = 0


@dataclass(kw_only=True)
class Run:
    """A child's life so far."""

    child: Child
    process: subprocess.Popen[bytes]
    # Copies the process's output to the log, and ends with it.
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
        if child.awaited:
            self.wait_for(child)

    def watch(self) -> None:
        """One look at every child: note who answers, bury who died, start again who is due."""
        for run in self.runs.values():
            if run.restart_at is not None:
                self.start_again(run)
            elif run.process.poll() is not None:
                self.bury(run)
            elif not run.answered:
                self.ask(run)

    def answers(self, name: str) -> bool:
        return self.runs[name].answered

    def wait_for(self, child: Child) -> None:
        """Watch until this child serves; what comes next needs it."""
        deadline = time.monotonic() + child.awaited
        while not self.answers(child.name):
            if time.monotonic() > deadline:
                raise CannotStart(f"{child.name} did not answer within {child.awaited:.0f} s. The log above says why.")
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
            self.clear_away(run)
        self.runs.clear()

    def kill(self) -> None:
        """Stop at once: somebody asked twice."""
        for run in self.runs.values():
            self.clear_away(run)

    # --- One child ----------------------------------------------------------------------------
    def spawn(self, child: Child) -> tuple[subprocess.Popen[bytes], threading.Thread]:
        command = [sys.executable, "-I", "-S", LEASH, str(os.getpid()), *child.command]
        process = subprocess.Popen(
            command,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **child.environment},
            stdin=subprocess.DEVNULL,
            pass_fds=child.files,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # Ctrl-C in a terminal reaches every process of the group: the order of stopping is ours.
            start_new_session=True,
        )
        if child.nice:
            stand_back(process.pid, child.nice)
        output = threading.Thread(target=self.copy_output, args=(child, process), daemon=True)
        output.start()
        # On a full disk the child runs without.
        with contextlib.suppress(OSError):
            self.pid_file(child).write_text(f"{process.pid}\n")
        return process, output

    def copy_output(self, child: Child, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout
        for line in iter(lambda: process.stdout.readline(LINE_BYTES), b""):  # type: ignore[union-attr]
            text = line.decode(errors="replace").rstrip()
            if text and not any(noise in text for noise in child.noise):
                self.log.line(child.name, text)

    def ask(self, run: Run) -> None:
        run.answered = not run.child.address or probes.answers(run.child.address)
        if run.answered and run.child.address:
            self.log.line(run.child.name, f"answers after {time.monotonic() - run.started:.1f} s")

    def bury(self, run: Run) -> None:
        now = time.monotonic()
        self.clear_away(run)
        run.deaths = (*recent(run.deaths, now=now), now)
        died = f"{run.child.name} {cause_of_death(run.process.returncode)}"
        match after_death(run.deaths, now=now):
            case Restart(delay=delay):
                run.restart_at = now + delay
                self.log.line("up", f"{died}; it is started again in {delay:g} s")
            case GiveUp(deaths=deaths):
                often = f"{deaths} times within {WINDOW_SECONDS:.0f} s"
                raise GaveUp(f"{died}; that was {often}. Dominds stops: the lines of {run.child.name} say why.")

    def start_again(self, run: Run) -> None:
        now = time.monotonic()
        if run.restart_at is None or now < run.restart_at:
            return
        run.process, run.output = self.spawn(run.child)
        run.started, run.restart_at, run.answered = now, None, False
        self.log.line("up", f"{run.child.name} was started again as process {run.process.pid}")

    def clear_away(self, run: Run) -> None:
        """Kill what is left of its process group, such as a pool's own children, and let its last words be written."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(run.process.pid, signal.SIGKILL)
        run.process.wait()
        run.output.join(GRACE_SECONDS)
        self.pid_file(run.child).unlink(missing_ok=True)

    def pid_file(self, child: Child) -> Path:
        return self.run_dir / f"{child.name}.pid"


def stand_back(pid: int, steps: int) -> None:
    """Before it has threads, which inherit it. Linux may weigh whole sessions instead, and each child is one."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, 0) + steps)
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text(str(steps))


def cause_of_death(status: int) -> str:
    if status < 0:
        return f"was killed by {signal.Signals(-status).name}"
    return f"ended with status {status}"


STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Children in the order of their start, and what is said once the first web process answers, if there is one."""

    data_dir: str
    database: Database
    children: Sequence[Child]
    welcome: str
    # Host and port of the web processes.
    listens: tuple[str, int] | None


def become_watcher(plan: Plan) -> NoReturn:
    """The plan goes through a pipe: it holds passwords, and everyone can read a command line. No lock is held
    meanwhile, and no child runs."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as file:
        json.dump(asdict(plan), file)
    for number in (reading, *(number for child in plan.children for number in child.files)):
        os.set_inheritable(number, True)
    # Whoever asks to stop now is heard as soon as the other code listens.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    os.execv(sys.executable, [sys.executable, "-m", "dominds.supervisor", str(reading)])  # noqa: S606


def read_plan(number: int) -> Plan:
    with os.fdopen(number) as file:
        given = json.load(file)
    children = [Child(**child) for child in given.pop("children")]
    return Plan(children=children, database=Database(**given.pop("database")), **given)


def stop_on_signals() -> None:
    """However we are asked to stop, it arrives as KeyboardInterrupt in the main thread."""
    for number in STOPS:
        # `nohup` asks for hangups to be ignored.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
