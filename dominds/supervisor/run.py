"""`up` until its children start: check, prepare, plan the children, become the supervisor. The children are web
servers, workers (one for each row of `WORKERS`), the embedded Redis and the demo's LLM.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import NoReturn

from django.conf import settings
from django.db import DatabaseError, connections

from dialogs.llms.reads import providers_ready_by_environment
from dialogs.llms.writes import providers
from dialogs.pages.accounts import ensure_first_user
from dominds.data_packages import WEIGHTS, FetchFailed, fetch
from dominds.supervisor import llama_server, lock, prepare, probes, valkey
from dominds.supervisor.children import Child, Plan, become_supervisor, stop_on_signals
from dominds.supervisor.lock import CannotStart
from dominds.supervisor.log import Log, ToLog

# glibc raises these two thresholds (bytes) whenever a large block is freed, and then keeps up to 64 MB of free memory.
# Fixed, blocks above 128 KB go back to the system when they are freed.
GIVES_BACK = {name: os.environ.get(name, "131072") for name in ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_")}
# For workers with many threads: glibc would give each its own heap, whose free memory no other thread uses. Two are
# enough, since Python runs one thread at a time. Not for web processes: requests of `/v1` become a little slower.
HEAPS = {"MALLOC_ARENA_MAX": os.environ.get("MALLOC_ARENA_MAX", "2")}


DEMO_HOST = "127.0.0.1"


@dataclass(frozen=True, kw_only=True)
class Worker:
    """A Celery worker: the child's name, its queue, its pool, and its niceness."""

    name: str
    queue: str
    pool: str
    concurrency: int
    nice: int


# Turns wait for providers: many threads. Compactions compute: one process, which loads the embedding model. Its pool is
# "solo": a pool of processes would load the code twice, and with a pool of threads Celery notices up to a second late
# that a task is done.
#
# Priority on a busy machine: pages, then turns, then compactions.
WORKERS = (
    Worker(name="turns", queue="turns", pool="threads", concurrency=settings.DOMINDS_TURN_THREADS, nice=5),
    Worker(name="compaction", queue="compaction", pool="solo", concurrency=1, nice=10),
)


def worker(row: Worker) -> Child:
    options = {
        "--queues": row.queue,
        "--pool": row.pool,
        "--concurrency": str(row.concurrency),
        "--hostname": f"{row.name}@%h",
        "--loglevel": "WARNING",
    }
    # Workers need no news of each other, and `up` watches them itself. A start without these is a second faster.
    flags = ("--without-gossip", "--without-mingle", "--without-heartbeat")
    command = (sys.executable, "-m", "celery", "--quiet", "--app", "dominds", "worker", *flags)
    return Child(
        name=row.name,
        command=(*command, *(part for option in options.items() for part in option)),
        # Celery warns about root, which is usual in a container; nothing here is unpickled.
        environment={
            "PYTHONWARNINGS": "ignore:You're running the worker",
            # `up` has run the checks. They import all views: half a second and 13 MB for a process that serves no page.
            "CELERY_SKIP_CHECKS": "yes",
            **GIVES_BACK,
            **(HEAPS if row.concurrency > 1 else {}),
        },
        nice=row.nice,
    )


def listening(host: str, port: int) -> socket.socket | None:
    """The socket from which all web processes accept connections. Raises OSError.

    None for an IPv6 address, whose socket Daphne cannot be given: there one process listens by itself.
    """
    return None if ":" in host else socket.create_server((host, port), backlog=socket.SOMAXCONN)


def web(*, host: str, port: int, listens: int | None) -> Iterator[Child]:
    """The web processes; each serves everything. `listens`: the file descriptor of their socket."""
    # WhiteNoise warns if the folder is missing; it reads the sources in any case.
    settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)
    where = ("--bind", host, "--port", str(port)) if listens is None else ("--fd", str(listens))
    command = (sys.executable, "-m", "dominds.web", *where, "--no-server-name")
    sizes = (f"--websocket-max-{what}-size={settings.DOMINDS_SOCKET_BYTES}" for what in ("message", "frame"))
    first = Child(
        name="web",
        command=(*command, *sizes, "--verbosity", "0", "dominds.asgi:application"),
        environment={"DOMINDS_HOST": host, "DOMINDS_PORT": str(port), **GIVES_BACK},
        address=f"http://{probes.reachable(host)}:{port}/healthz",
        files=() if listens is None else (listens,),
    )
    yield first
    # Any of them answers at the address, so only the first is watched for it.
    further = range(2, settings.DOMINDS_WEB_PROCESSES + 1) if listens is not None else ()
    yield from (replace(first, name=f"web-{at}", address="") for at in further)


@dataclass(frozen=True, kw_only=True)
class Options:
    host: str
    port: int
    demo: bool
    web: bool
    workers: bool

    @property
    def address(self) -> str:
        return f"http://{probes.reachable(self.host)}:{self.port}"


def up(options: Options) -> None:
    """Returns only if it was stopped while preparing. Raises CannotStart, with a line for a person."""
    data_dir = settings.DOMINDS_DATA_DIR
    stop_on_signals()
    prepare.check_writable(data_dir)
    prepare.make_private(data_dir)
    with contextlib.suppress(KeyboardInterrupt):
        become_supervisor(prepared(options))


def prepared(options: Options) -> Plan:
    with lock.sole_user(settings.DOMINDS_DATA_DIR, purpose="starting it again"), one_log() as log:
        check(options, log)
        with lock.database_in_use(lock.configured_database()):
            return plan(options, log)


def check(options: Options, log: Log) -> None:
    prepare.check_disk(settings.DOMINDS_DATA_DIR)
    prepare.check_programs(demo=options.demo and options.workers and settings.IS_CLONE)
    if options.web:
        prepare.check_port(options.host, options.port)
        hint = prepare.host_hint(options.host)
        if hint:
            log.line("up", hint)
    if valkey.is_embedded() and valkey.port_is_taken():
        begin_again()
    prepare.check_database()
    prepare.check_settings(log)


def begin_again() -> NoReturn:
    """Another program uses the embedded server's port: start again with a new address, since settings are read once."""
    valkey.forget_address()
    os.execv(sys.executable, sys.orig_argv)  # noqa: S606


def plan(options: Options, log: Log) -> Plan:
    """Prepares the database too."""
    try:
        children = [*redis(), *prepared_demo(options, log), *workers(options), *web_processes(options)]
        welcome = prepare.welcome(options.address) if options.web else "Dominds' workers run."
    except DatabaseError as error:
        raise CannotStart(prepare.database_problem(error)) from error
    finally:
        connections.close_all()
    return Plan(
        data_dir=str(settings.DOMINDS_DATA_DIR),
        database=lock.configured_database(),
        children=children,
        welcome=welcome,
        listens=(options.host, options.port) if options.web else None,
    )


def redis() -> Iterator[Child]:
    if valkey.is_embedded():
        yield valkey.child()
    elif not probes.redis_answers(settings.REDIS_URL):
        raise CannotStart("Redis does not answer at REDIS_URL. Start it, or unset REDIS_URL to use the embedded one.")


def prepared_demo(options: Options, log: Log) -> Iterator[Child]:
    """Prepare the database; then the demo's child, if it is wanted."""
    with prepare.one_at_a_time():
        prepare.migrate(log)
        prepare.load_catalogue()
        ensure_first_user()
        if not options.workers:
            return
        if options.demo and not provider_in_environment() and has_demo(log):
            port = demo_port()
            install_demo(port)
            yield demo(port)
        else:
            providers.retire_demo()
            prepare.ensure_agents(log)


def provider_in_environment() -> bool:
    """A provider's key or a file of LLMs is configured, so no demo is needed."""
    return settings.DOMINDS_LLM_FILE_REQUIRED or bool(providers_ready_by_environment())


def demo_port() -> int:
    """The configured port, or a free one if another installation's demo uses that."""
    taken = probes.port_problem(DEMO_HOST, settings.DOMINDS_DEMO_PORT)
    return probes.free_port() if taken else settings.DOMINDS_DEMO_PORT


def has_demo(log: Log) -> bool:
    """Is the demo installed? For an installed package it is an extra, whose weights are fetched here."""
    if settings.IS_CLONE or llama_server.weights():
        return True
    if not find_spec("xllamacpp"):
        log.line("up", "there is no demo model here; dominds[demo] installs one")
        return False
    log.line("up", "fetching the weights of the demo model, 94 MB, once")
    try:
        fetch(WEIGHTS)
    except FetchFailed as error:
        log.line("up", f"without the demo model, as its weights could not be fetched: {error}")
        return False
    return True


def install_demo(port: int) -> None:
    providers.install_demo(base_url=f"http://{DEMO_HOST}:{port}", model_id=llama_server.MODEL_ID)


def demo(port: int) -> Child:
    options = {"--port": port, "--context": settings.DOMINDS_DEMO_CONTEXT, "--model": llama_server.weights()}
    program = (sys.executable, "-m", "dominds.supervisor.llama_server")
    return Child(
        name="demo",
        command=(*program, *(str(part) for option in options.items() for part in option)),
        address=f"http://{DEMO_HOST}:{port}/health",
    )


def workers(options: Options) -> Iterator[Child]:
    if options.workers:
        yield from (worker(row) for row in WORKERS)


def web_processes(options: Options) -> Iterator[Child]:
    if options.web:
        listens = listening(options.host, options.port)
        # Detached, so that it stays open when this process becomes the supervisor.
        yield from web(host=options.host, port=options.port, listens=listens.detach() if listens else None)


@contextlib.contextmanager
def one_log() -> Iterator[Log]:
    """The log, to which this process's own logging records go too."""
    log = Log(folder=settings.DOMINDS_DATA_DIR / "log", terminal=sys.stderr)
    root = logging.getLogger()
    handlers, root.handlers = root.handlers, [ToLog(log)]
    try:
        yield log
    finally:
        root.handlers = handlers
        log.close()
