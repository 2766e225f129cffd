"""The plan: what `up` is to run, handed to the process that runs it.

To prepare takes Django, some 100 MB; to start children, watch and stop them takes a tenth of that. So `up` prepares,
writes down what is to run, and becomes `python -m dominds.supervisor`: the same process, with other code in it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import NoReturn

from dominds.supervisor.children import Child
from dominds.supervisor.lock import Database

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
