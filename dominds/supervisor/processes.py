"""The web server and the workers: their command lines. A further worker is one more row of `WORKERS`."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

from django.conf import settings

from dominds.supervisor import probes
from dominds.supervisor.children import Child


@dataclass(frozen=True, kw_only=True)
class Worker:
    """A Celery worker: the child's name, the queue that it serves, and its pool."""

    name: str
    queue: str
    pool: str
    concurrency: int


# Turns wait on providers: threads, many. Compaction computes: a process of its own, which loads the embedding model.
WORKERS = (
    Worker(name="turns", queue="turns", pool="threads", concurrency=settings.DOMINDS_TURN_THREADS),
    Worker(name="compaction", queue="compaction", pool="prefork", concurrency=1),
)


def worker(row: Worker) -> Child:
    options = {
        "--queues": row.queue,
        "--pool": row.pool,
        "--concurrency": str(row.concurrency),
        "--hostname": f"{row.name}@%h",
        "--loglevel": "WARNING",
    }
    # They talk to each other about nothing that we need, nor does anybody listen to whether they live: `up` watches
    # them itself. A start without it is a second faster.
    flags = ("--without-gossip", "--without-mingle", "--without-heartbeat")
    command = (sys.executable, "-m", "celery", "--quiet", "--app", "dominds", "worker", *flags)
    return Child(
        name=row.name,
        command=(*command, *(part for option in options.items() for part in option)),
        # In a container root is usual, and nothing here is unpickled.
        environment={"PYTHONWARNINGS": "ignore:You're running the worker"},
    )


def listening(host: str, port: int) -> socket.socket | None:
    """The socket that all web processes take connections from: whichever is free takes the next. Raises OSError.

    None for an address of IPv6, whose sockets Daphne cannot be handed: there one process listens by itself.
    """
    return None if ":" in host else socket.create_server((host, port), backlog=socket.SOMAXCONN)


def web(*, host: str, port: int, listens: int | None) -> Iterator[Child]:
    """The web processes: any of them serves any page, stream and websocket. `listens`: the number of their socket."""
    # WhiteNoise warns when it is not there, and reads the sources either way.
    settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)
    where = ("--bind", host, "--port", str(port)) if listens is None else ("--fd", str(listens))
    command = (sys.executable, "-m", "dominds.web", *where, "--no-server-name")
    sizes = (f"--websocket-max-{what}-size={settings.DOMINDS_SOCKET_BYTES}" for what in ("message", "frame"))
    first = Child(
        name="web",
        command=(*command, *sizes, "--verbosity", "0", "dominds.asgi:application"),
        environment={"DOMINDS_HOST": host, "DOMINDS_PORT": str(port)},
        answers=lambda: probes.page_answers(f"http://{probes.reachable(host)}:{port}/healthz"),
        files=() if listens is None else (listens,),
    )
    yield first
    # Whoever asks is answered by any of them, so only one is waited for.
    further = range(2, settings.DOMINDS_WEB_PROCESSES + 1) if listens is not None else ()
    yield from (replace(first, name=f"web-{at}", answers=None) for at in further)
