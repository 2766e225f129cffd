"""The test world's cast: Alice owns the dialog, Bob does not, Sam is staff."""

from __future__ import annotations

import gc
import logging
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection, connections, transaction
from django.test import TransactionTestCase
from django.utils import timezone, translation
from hypothesis import settings as hypothesis_settings
from hypothesis.internal.conjecture import providers as hypothesis_draws

from dialogs.models import LLM, Agent, Course, Dialog, Provider
from tests.migrated import migrated

# How long an example takes says how busy the machine is.
# The same tree gives the same result; `make test-long` looks further.
hypothesis_settings.register_profile("same", deadline=None, derandomize=True)
hypothesis_settings.register_profile("new", deadline=None)
hypothesis_settings.load_profile("same")
# One in twenty draws takes a constant of our modules imported by then, which depends on the tests that ran before.
hypothesis_draws._get_local_constants = hypothesis_draws.Constants


class Loggers(dict[str, Any]):
    """pytest goes through all loggers before each test, while a thread of an earlier one may import what makes more."""

    def values(self) -> Any:
        return list(super().values())


logging.Logger.manager.loggerDict = Loggers(logging.Logger.manager.loggerDict)

# Django makes them once, with the tables; its own flush would make them anew after every test.
KEPT = {"django_content_type", "auth_permission"}


def delete_rows(_test: TransactionTestCase) -> None:
    """What a test has committed goes, table by table; most tables are empty, and cost nothing."""
    tables = [
        connection.ops.quote_name(name) for name in connection.introspection.django_table_names() if name not in KEPT
    ]
    filled = " UNION ALL ".join(f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {table})" for table in tables)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(filled)
        for (table,) in cursor.fetchall():
            cursor.execute(f"DELETE FROM {table}")


TransactionTestCase._fixture_teardown = delete_rows  # type: ignore[method-assign]


@pytest.fixture(scope="session", autouse=True)
def keep_connections() -> None:
    """Each step of the driver would open one of its own, which costs more than the step."""
    connections.settings["default"]["CONN_MAX_AGE"] = None


@pytest.fixture(scope="session")
def django_db_keepdb(django_db_keepdb: bool, django_db_modify_db_settings: None) -> bool:
    """On SQLite there is one with all tables already, which need not be made again."""
    if connection.vendor != "sqlite":
        return django_db_keepdb
    shutil.copy(migrated(), connection.creation._get_test_db_name())
    return True


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """PostgreSQL drops no database that somebody is connected to, as a thread may still be."""
    yield
    if connection.vendor == "postgresql":
        with django_db_blocker.unblock(), connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )


@pytest.fixture(scope="session", autouse=True)
def find_static_files_when_asked_for() -> None:
    """Every test's client has middleware of its own, and WhiteNoise would read all files of the project for each."""
    settings.WHITENOISE_AUTOREFRESH = True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """On PostgreSQL only what asks a database is run again: the rest has no way to tell the difference."""
    if connection.vendor == "sqlite":
        return
    config.hook.pytest_deselected(items=[item for item in items if not _asks_a_database(item)])
    items[:] = [item for item in items if _asks_a_database(item)]


def _asks_a_database(item: pytest.Item) -> bool:
    marked = any(item.get_closest_marker(name) for name in ("django_db", "stack", "e2e"))
    return marked or not {"db", "transactional_db"}.isdisjoint(getattr(item, "fixturenames", ()))


def pytest_collection_finish() -> None:
    """What nine thousand tests were collected into stays to the end: the garbage collector need not walk through it."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def in_english() -> Iterator[None]:
    """A request leaves its language behind in the thread; the next test must not inherit it."""
    with translation.override("en"):
        yield


@pytest.fixture(autouse=True)
def quick_passwords(request: pytest.FixtureRequest, settings: Any) -> None:
    """A slow hash is right for people and a tenth of a second lost in a test; real processes have the real one."""
    if "stack" not in request.keywords:
        settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher", *settings.PASSWORD_HASHERS]


@pytest.fixture
def alice(db: Any) -> User:
    return User.objects.create_user("alice", password="alice-pass-1")


@pytest.fixture
def bob(db: Any) -> User:
    return User.objects.create_user("bob", password="bob-pass-1")


@pytest.fixture
def sam(db: Any) -> User:
    return User.objects.create_user("sam", password="sam-pass-1", is_staff=True, is_superuser=True)


@pytest.fixture
def provider(db: Any) -> Provider:
    return Provider.objects.create(name="scripted", kind="scripted", base_url="script.json")


@pytest.fixture
def llm(provider: Provider) -> LLM:
    """A window so small that a script's numbers fill it. What is really sent would not fit: nothing is compacted by
    itself, unless a test gives its dialog a limit."""
    return LLM.objects.create(
        provider=provider,
        model_id="tiny",
        context_length=1000,
        context_length_source="admin",
        optimal_max_tokens=500,
        compaction="off",
    )


@pytest.fixture
def agent(llm: LLM) -> Agent:
    return Agent.objects.create(name="Helper", slug="helper", instructions="You help.", llm=llm)


@pytest.fixture
def dialog(alice: User, agent: Agent) -> Dialog:
    """Alice's dialog with the agent Helper: empty, idle, one course."""
    dialog = Dialog.objects.create(owner=alice, agent=agent, llm=agent.llm, active_at=timezone.now())
    Course.objects.create(dialog=dialog, number=1)
    return dialog
