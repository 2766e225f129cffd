"""`manage.py doctor`: is this installation well, and what to do where it is not. Looks only, changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dominds.doctor import llms, machine, servers
from dominds.doctor.findings import Finding

CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    machine.install,
    machine.data_folder,
    servers.database,
    servers.redis_server,
    servers.workers,
    servers.web,
    llms.providers,
    llms.limits,
)


def examine() -> Iterator[Finding]:
    """Every finding, as it is made: some checks wait on a server."""
    for check in CHECKS:
        yield from check()
