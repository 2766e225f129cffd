"""`manage.py doctor`: check this installation, one line for each check, with the fix where something is wrong. Changes
nothing.

It checks the machine (Python, packages, data folder), what must answer (database, Redis, workers, web server), each
provider's connection, and each LLM's limits.
"""

from __future__ import annotations

import json
import platform
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from typing import Any
from urllib.parse import urlsplit

from asgiref.sync import async_to_sync
from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from django.db import DatabaseError, connection
from django.db.migrations.exceptions import InconsistentMigrationHistory

from dialogs.compaction.settings.checking import limit_warnings
from dialogs.llms.reads import configured, list_providers, missing_key, settings_for
from dialogs.llms.words import better_as_ollama, command_for_ollama, kept_by_llm
from dialogs.llms.writes.catalogue import ignored_values
from dialogs.models import LLM, Provider
from dialogs.models.llm import Compaction
from dialogs.models.provider import Origin
from dialogs.providers import probe
from dominds import __version__
from dominds.celery import app
from dominds.data_packages import missing_vocabularies
from dominds.supervisor import lock, prepare, probes, valkey
from dominds.supervisor.lock import CannotStart
from dominds.supervisor.valkey import is_embedded, program
from health.monitor.levels import context_window

LOCAL_HOSTS = {"127.0.0.1", "localhost", "::1", None}
# How long to wait for workers: first try, and second one, since they have low priority on a busy machine.
PING_SECONDS = 1.0, 4.0
START = f"start it with `{settings.COMMAND} up`"
REQUIREMENTS = settings.SHARED_DIR / "requirements" / "base.txt"
# The most LLMs that are listed, lest they hide the other lines.
MOST_LLMS = 20


class State(StrEnum):
    OK = "ok"
    # Worth knowing; everything works.
    NOTE = "note"
    WRONG = "wrong"


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    name: str
    state: State
    text: str
    fix: str = ""


def ok(name: str, text: str) -> CheckResult:
    return CheckResult(name=name, state=State.OK, text=text)


def note(name: str, text: str, *, fix: str = "") -> CheckResult:
    return CheckResult(name=name, state=State.NOTE, text=text, fix=fix)


def wrong(name: str, text: str, *, fix: str) -> CheckResult:
    return CheckResult(name=name, state=State.WRONG, text=text, fix=fix)


def install() -> Iterator[CheckResult]:
    yield ok("install", f"Dominds {__version__}, Python {platform.python_version()}, Django {version('django')}")
    missing = sorted(name for name in required() if not installed(name))
    if missing:
        yield wrong(
            "packages", f"not installed: {', '.join(missing)}", fix="run `make install`, or install dominds again"
        )
    if vocabularies := missing_vocabularies():
        fix = f"run `{settings.COMMAND} fetch_data`"
        yield note("vocabularies", f"tokens are counted less exactly without {' and '.join(vocabularies)}", fix=fix)
    if is_embedded():
        try:
            yield ok("valkey", f"program {program()}")
        except CannotStart as error:
            yield wrong("valkey", "the embedded server's program is missing", fix=str(error))


def required() -> Iterator[str]:
    """The package names in requirements/base.txt. Environment markers are ignored."""
    for line in REQUIREMENTS.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            yield line.split("==")[0].split("[")[0].strip()


def installed(name: str) -> bool:
    try:
        return bool(version(name))
    except PackageNotFoundError:
        return False


def data_folder() -> Iterator[CheckResult]:
    folder = settings.DOMINDS_DATA_DIR
    try:
        prepare.check_writable(folder)
        prepare.check_disk(folder)
    except CannotStart as error:
        yield wrong("data", f"{folder} cannot be used", fix=str(error))
        return
    if prepare.open_to_others(folder):
        said = f"others on this machine can look into {folder}, which holds everything that people wrote"
        yield wrong("privacy", said, fix=f"chmod -R go= {folder}")
    yield ok("data", f"{folder}, {shutil.disk_usage(folder).free / 1e9:.1f} GB free")


def database() -> Iterator[CheckResult]:
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


def redis_server() -> Iterator[CheckResult]:
    if probes.redis_answers(settings.REDIS_URL):
        yield ok("redis", f"answers at {redis_address()}")
    elif valkey.is_embedded() and not lock.is_used(settings.DOMINDS_DATA_DIR):
        yield note("redis", "the embedded server is not running", fix=START)
    else:
        yield wrong("redis", f"does not answer at {redis_address()}", fix="start it, or check REDIS_URL")


def redis_address() -> str:
    """Where Redis is, without its password."""
    address = urlsplit(settings.REDIS_URL)
    return f"{address.hostname}:{address.port or 6379}" if address.hostname else address.path


def workers() -> Iterator[CheckResult]:
    if not probes.redis_answers(settings.REDIS_URL):
        yield note("workers", "cannot be asked without Redis")
        return
    answers = next(filter(None, (app.control.inspect(timeout=seconds).ping() for seconds in PING_SECONDS)), None)
    if answers:
        yield ok("workers", f"{len(answers)} answer: {', '.join(sorted(answers))}")
    else:
        yield wrong("workers", "none answers, so no turn is answered", fix=START)


def web() -> Iterator[CheckResult]:
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


def providers() -> Iterator[CheckResult]:
    try:
        found = list(list_providers(enabled_only=True))
    except DatabaseError:
        yield note("providers", "cannot be read before the database is well")
        return
    keyless = [provider for provider in found if missing_key(provider)]
    for provider in found:
        if provider not in keyless:
            yield examined(provider)
    if keyless:
        names = ", ".join(provider.name for provider in keyless)
        yield note("providers", f"without a key: {names}", fix="set a key in the admin, or the variable that it names")
    if len(keyless) == len(found):
        yield wrong(
            "providers", "none can be asked", fix=f"add one: `{settings.COMMAND} provider add --help`, or set a key"
        )


def examined(provider: Provider) -> CheckResult:
    """Test the connection. The demo need not answer while `up` does not run."""
    result = async_to_sync(probe.test_connection)(settings_for(provider))
    name = f"provider {provider.name}"
    # What the server says now (not stored: the doctor changes nothing), else what it said before.
    is_ollama = provider.is_hidden_ollama if result.is_ollama is None else result.is_ollama
    if result.ok and is_ollama:
        return note(
            name, f"{result.text} {better_as_ollama()}", fix=command_for_ollama(provider.base_url, name="ollama")
        )
    if result.ok:
        return ok(name, result.text)
    if provider.origin == Origin.DEMO and not lock.is_used(settings.DOMINDS_DATA_DIR):
        return note(name, f"runs while `{settings.COMMAND} up` does")
    return wrong(name, result.text, fix="start its server, or correct its address or its key in the admin")


def limits() -> Iterator[CheckResult]:
    try:
        llms = list(LLM.objects.filter(enabled=True, provider__enabled=True).select_related("provider"))
    except DatabaseError:
        return
    for ignored in ignored_values():
        yield wrong("catalogue", str(ignored), fix="write a whole number above zero, or leave it out")
    results = [result for llm in llms for result in of_one_llm(llm)]
    yield from results
    if not results and llms:
        yield ok("limits", f"{len(llms)} LLMs, each with a window and ceilings in order")
    yield from overflow([llm for llm in llms if not missing_key(llm.provider)])


def overflow(llms: list[LLM]) -> Iterator[CheckResult]:
    """How each LLM is guarded."""
    for llm in llms[:MOST_LLMS]:
        state = note if context_window(configured(llm)) is None or llm.compaction == Compaction.OFF else ok
        yield state(f"overflow {llm.slug}", kept_by_llm(llm))
    if len(llms) > MOST_LLMS:
        yield ok("overflow", f"{len(llms) - MOST_LLMS} more: `{settings.COMMAND} provider list`")


def of_one_llm(llm: LLM) -> Iterator[CheckResult]:
    numbers = configured(llm)
    state = note if context_window(numbers) is None else wrong
    for odd in limit_warnings(llm.slug, numbers):
        yield state(f"limits of {llm.slug}", odd.msg, fix=odd.hint or "")


def examine() -> Iterator[CheckResult]:
    """Each result as soon as it is known, since some checks wait for a server."""
    for check in (install, data_folder, database, redis_server, workers, web, providers, limits):
        yield from check()


class Command(BaseCommand):
    help = "Says what is well and what is not; the exit status is 1 when something is wrong."
    # The doctor must run even where the checks would stop other commands.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", dest="as_json", help="print a JSON array")

    def handle(self, *, as_json: bool, **options: Any) -> None:
        results = list(examine()) if as_json else self.speak(examine())
        if as_json:
            self.stdout.write(json.dumps([asdict(result) for result in results], indent=2, ensure_ascii=False))
        if any(result.state == State.WRONG for result in results):
            sys.exit(1)

    def speak(self, results: Iterable[CheckResult]) -> list[CheckResult]:
        styles = {State.OK: self.style.SUCCESS, State.NOTE: self.style.WARNING, State.WRONG: self.style.ERROR}
        said = []
        for result in results:
            self.stdout.write(f"{styles[result.state](f'{result.state:<6}')} {result.name}: {result.text}")
            if result.fix:
                self.stdout.write(f"       fix: {result.fix}")
            said.append(result)
        return said
