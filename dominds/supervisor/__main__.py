"""`python -m dominds.supervisor`: the program that `up` becomes after preparing. It starts the children of a plan,
prints the address, watches them until it is stopped, and stops them in order. It does not import Django.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from pathlib import Path

from dominds.supervisor import lock
from dominds.supervisor.children import POLL_SECONDS, STOPS, Children, Plan, read_plan, stop_on_signals
from dominds.supervisor.lock import CannotStart, GaveUp
from dominds.supervisor.log import Log


def main() -> None:
    plan = read_plan(int(sys.argv[1]))
    stop_on_signals()
    log = Log(folder=Path(plan.data_dir) / "log", terminal=sys.stderr)
    try:
        follow(plan, log)
    except (CannotStart, GaveUp) as error:
        sys.exit(str(error))
    finally:
        log.close()


def follow(plan: Plan, log: Log) -> None:
    """Returns when it was stopped. Raises CannotStart or GaveUp, with a line for a person."""
    data_dir = Path(plan.data_dir)
    with (
        contextlib.suppress(KeyboardInterrupt),
        lock.sole_user(data_dir, purpose="starting it again"),
        lock.database_in_use(plan.database) as taken,
        lock.listening(data_dir, *plan.listens) if plan.listens else contextlib.nullcontext(),
    ):
        run(plan, Children(log=log, run_dir=data_dir / "run"), log, taken)


def run(plan: Plan, children: Children, log: Log, taken: threading.Event) -> None:
    try:
        # `up` blocked these signals before it became this program.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
        for child in plan.children:
            children.start(child)
        watch(plan, children, taken)
    except KeyboardInterrupt:
        log.line("up", "stopping")
    finally:
        stop(children)


def watch(plan: Plan, children: Children, taken: threading.Event) -> None:
    """`taken` is set when a restore has locked the database."""
    announced = False
    while True:
        if taken.is_set():
            raise CannotStart(lock.RESTORED)
        children.watch()
        if not announced and (not plan.listens or children.answers("web")):
            announce(plan.welcome)
            announced = True
        time.sleep(POLL_SECONDS)


def announce(welcome: str) -> None:
    """Print the welcome. A closed standard output is no reason to stop."""
    with contextlib.suppress(OSError):
        print(welcome, flush=True)  # noqa: T201


def stop(children: Children) -> None:
    try:
        children.stop()
    except KeyboardInterrupt:
        children.kill()


if __name__ == "__main__":
    main()
