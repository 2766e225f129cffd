"""What `up` checks before it starts anything (folder, disk, port, programs), and what it does to the database: back up,
migrate, load the catalogue, create the first user.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from django.conf import settings
from django.core import checks
from django.core.management import call_command
from django.db import DatabaseError, connection
from django.db.migrations.exceptions import InconsistentMigrationHistory
from django.db.migrations.executor import MigrationExecutor

from dialogs.llms.writes import catalogue, providers
from dialogs.pages.accounts import ensure_first_user, sign_in_path
from dominds import backups
from dominds.supervisor import llama_server, probes
from dominds.supervisor.lock import CannotStart
from dominds.supervisor.log import Log

PROGRAMS = ("daphne", "celery")
# The permission bits of everybody but a file's owner.
OTHERS = 0o077
PRIVATE = ("backups", "log", "run", "valkey")


def check_writable(data_dir: Path) -> None:
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=data_dir):
            pass
    except OSError as error:
        raise CannotStart(
            f"The data folder {data_dir} cannot be written ({error.strerror}). "
            "Change its permissions, or set DOMINDS_DATA_DIR to another folder."
        ) from error


def make_private(data_dir: Path) -> None:
    """Let only the owner read the data folder and its files. `doctor` reports what could not be changed."""
    for path in (data_dir, *_kept_in(data_dir)):
        with contextlib.suppress(OSError):
            if not path.is_symlink() and open_to_others(path):
                path.chmod(path.stat().st_mode & ~OTHERS)


def open_to_others(path: Path) -> bool:
    return bool(path.stat().st_mode & OTHERS)


def _kept_in(data_dir: Path) -> Iterator[Path]:
    """The folder's entries, and all files in private folders. Workspaces and static files are protected by the
    folder."""
    yield from data_dir.glob("*")
    for name in PRIVATE:
        yield from (data_dir / name).rglob("*")


def check_disk(data_dir: Path) -> None:
    free_mb = shutil.disk_usage(data_dir).free / 1e6
    if free_mb < settings.DOMINDS_MIN_FREE_MB:
        raise CannotStart(
            f"Only {free_mb:.0f} MB are free for {data_dir}; {settings.DOMINDS_MIN_FREE_MB:.0f} MB are needed. "
            "Free some, or set DOMINDS_DATA_DIR to a folder on another disk."
        )


def check_port(host: str, port: int) -> None:
    problem = probes.port_problem(host, port)
    if problem:
        raise CannotStart(
            f"Cannot listen on {host} port {port}: {problem.strerror or problem}. "
            f"Stop what uses it, or choose another: `{settings.COMMAND} up --port {port % 65535 + 1}`."
        )


def host_hint(host: str) -> str:
    """Advice where it listens on all addresses: Django answers only to the host names in its settings."""
    if host not in probes.ANY_ADDRESS or "DOMINDS_ALLOWED_HOSTS" in os.environ:
        return ""
    return f"listening on {host}: set DOMINDS_ALLOWED_HOSTS to the names by which people reach this machine"


def check_programs(*, demo: bool) -> None:
    missing = [name for name in PROGRAMS if not find_spec(name)]
    if missing:
        raise CannotStart(f"{' and '.join(missing)} not installed. Run `make install`, or install dominds again.")
    if demo and not (find_spec("xllamacpp") and llama_server.weights()):
        raise CannotStart("The demo model is not installed. Run `make install`, or start with --no-demo.")


# The id of the advisory lock; it must be the same for all machines on one database.
PREPARE_LOCK = 20261121


def pending_migrations() -> int:
    executor = MigrationExecutor(connection)
    executor.loader.check_consistent_history(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def check_database() -> None:
    """Raises CannotStart where the database cannot be read, or has other migrations."""
    try:
        pending_migrations()
    except (DatabaseError, InconsistentMigrationHistory) as error:
        raise CannotStart(database_problem(error)) from error


def check_settings(log: Log) -> None:
    """Run Django's system checks and ours. Warnings are logged, errors raise CannotStart."""
    for issue in checks.run_checks():
        said = f"{issue.id}: {issue.msg} {issue.hint or ''}".replace("\n", " ").strip()
        if issue.is_serious():
            raise CannotStart(said)
        log.line("up", said)


def migrate(log: Log) -> None:
    """Apply pending migrations, after a backup of an SQLite database that is not empty."""
    try:
        pending = pending_migrations()
        if not pending:
            return
        kept = back_up_before_migrating()
        if kept:
            log.line("up", f"the database before its {pending} migrations is kept as {kept}")
        call_command("migrate", interactive=False, verbosity=0)
        log.line("up", f"database: {pending} migrations applied")
    except backups.BackupError as error:
        raise CannotStart(str(error)) from error
    except (DatabaseError, InconsistentMigrationHistory) as error:
        raise CannotStart(database_problem(error)) from error


def database_problem(error: Exception) -> str:
    reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return (
        f"The database {database_name()} cannot be used: {reason}. "
        "Check DATABASE_URL (DOMINDS_DATA_DIR for SQLite); copies are in the folder `backups` there."
    )


def database_name() -> str:
    """The database's name and host, without user and password."""
    base = connection.settings_dict
    return str(base["NAME"]) if connection.vendor == "sqlite" else f"{base['NAME']} on {base['HOST'] or 'this machine'}"


def back_up_before_migrating() -> Path | None:
    if connection.vendor != "sqlite" or not connection.introspection.table_names():
        return None
    target = backups.stamped("before-migrating-{time}.tar.gz")
    backups.make_backup(target)
    return target


@contextlib.contextmanager
def one_at_a_time() -> Iterator[None]:
    """An advisory lock: of several machines that start on one PostgreSQL, one prepares it and the others wait."""
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [PREPARE_LOCK])
        try:
            yield
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [PREPARE_LOCK])


def load_catalogue() -> None:
    try:
        catalogue.load_catalogue()
    except catalogue.CatalogueError as error:
        raise CannotStart(f"The catalogue of models cannot be read: {error}") from error


def ensure_agents(log: Log) -> None:
    for agent in providers.ensure_agents():
        log.line("up", f"agent {agent.slug} was made, to talk to {agent.llm.slug}")


def welcome(address: str) -> str:
    """The line that `up` prints: the address, and a sign-in link for the first time."""
    user = ensure_first_user()
    if settings.DOMINDS_ADMIN_PASSWORD or user.has_usable_password():
        return f"Dominds runs at {address}/"
    return f"Dominds runs at {address}/  Sign in once as {user.get_username()}: {address}{sign_in_path(user)}"
