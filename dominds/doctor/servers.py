"""Who must answer: the database, Redis, the workers, the web server."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.exceptions import InconsistentMigrationHistory

from dominds.celery import app
from dominds.doctor.findings import Finding, note, ok, wrong
from dominds.supervisor import lock, prepare, probes, valkey

LOCAL_HOSTS = {"127.0.0.1", "localhost", "::1", None}
PING_SECONDS = 1.0
START = f"start it with `{settings.COMMAND} up`"


def database() -> Iterator[Finding]:
    try:
        pending = prepare.pending_migrations()
    except (DatabaseError, InconsistentMigrationHistory) as error:
        yield wrong("database", f"{prepare.database_name()}: {first_line(error)}", fix="check DATABASE_URL")
        return
    yield ok("database", f"{connection.vendor}, {prepare.database_name()}")
    if pending:
        yield wrong("migrations", f"{pending} not applied", fix=f"run `{settings.COMMAND} migrate`, or {START}")
    else:
        yield ok("migrations", "all applied")
    if connection.vendor == "sqlite" and urlsplit(settings.REDIS_URL).hostname not in LOCAL_HOSTS:
        yield note(
            "machines",
            "SQLite serves one machine, and REDIS_URL points at another",
            fix="set DATABASE_URL to a PostgreSQL when web servers and workers run on several machines",
        )


def redis_server() -> Iterator[Finding]:
    if probes.redis_answers(settings.REDIS_URL):
        yield ok("redis", f"answers at {redis_address()}")
    elif valkey.is_embedded() and not lock.is_used(settings.DOMINDS_DATA_DIR):
        yield note("redis", "the embedded server is not running", fix=START)
    else:
        yield wrong("redis", f"does not answer at {redis_address()}", fix="start it, or check REDIS_URL")


def redis_address() -> str:
    """Without the password."""
    address = urlsplit(settings.REDIS_URL)
    return f"{address.hostname}:{address.port or 6379}" if address.hostname else address.path


def workers() -> Iterator[Finding]:
    if not probes.redis_answers(settings.REDIS_URL):
        yield note("workers", "cannot be asked without Redis")
        return
    answers = app.control.inspect(timeout=PING_SECONDS).ping() or {}
    if answers:
        yield ok("workers", f"{len(answers)} answer: {', '.join(sorted(answers))}")
    else:
        yield wrong("workers", "none answers, so no turn is answered", fix=START)


def web() -> Iterator[Finding]:
    configured = settings.DOMINDS_HOST, settings.DOMINDS_PORT
    host, port = lock.listens_at(settings.DOMINDS_DATA_DIR) or configured
    address = f"http://{probes.reachable(host)}:{port}"
    problem = probes.port_problem(host, port)
    if probes.page_answers(f"{address}/healthz"):
        yield ok("web", f"answers at {address}")
    elif problem:
        yield wrong(
            "web", f"port {port} on {host}: {problem.strerror}", fix="stop what uses it, or set DOMINDS_PORT to another"
        )
    else:
        yield note("web", f"not running; port {port} is free", fix=START)


def first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
