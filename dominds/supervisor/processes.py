"""The web server and the workers: their command lines. A further worker is one more row of `WORKERS`."""

from __future__ import annotations

import sys
from dataclasses import dataclass

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
    # They talk to each other about nothing that we need, and a start without it is a second faster.
    flags = ("--without-gossip", "--without-mingle")
    command = (sys.executable, "-m", "celery", "--quiet", "--app", "dominds", "worker", *flags)
    return Child(
        name=row.name,
        command=(*command, *(part for option in options.items() for part in option)),
        # In a container root is usual, and nothing here is unpickled.
        environment={"PYTHONWARNINGS": "ignore:You're running the worker"},
    )


def web(*, host: str, port: int) -> Child:
    # WhiteNoise warns when it is not there, and reads the sources either way.
    settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)
    command = (sys.executable, "-m", "dominds.web", "--bind", host, "--port", str(port), "--no-server-name")
    sizes = (f"--websocket-max-{what}-size={settings.DOMINDS_SOCKET_BYTES}" for what in ("message", "frame"))
    return Child(
        name="web",
        command=(*command, *sizes, "--verbosity", "0", "dominds.asgi:application"),
        environment={"DOMINDS_HOST": host, "DOMINDS_PORT": str(port)},
        answers=lambda: probes.page_answers(f"http://{probes.reachable(host)}:{port}/healthz"),
    )
