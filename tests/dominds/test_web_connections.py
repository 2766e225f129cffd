"""On PostgreSQL pages share connections that stay open, and none of them is handed out dead: a real `up`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import psycopg
import pytest

from tests.stack import Stack

pytestmark = [
    pytest.mark.stack,
    pytest.mark.skipif(not os.environ.get("DATABASE_URL"), reason="of connections to PostgreSQL"),
]
PAGES = 20
OTHERS = "datname = current_database() AND pid <> pg_backend_pid()"


@contextmanager
def database_of(up: Stack) -> Iterator[psycopg.Connection]:
    with psycopg.connect(up.environment["DATABASE_URL"], autocommit=True) as connection:
        yield connection


def opened(connection: psycopg.Connection) -> int:
    """How many connections were ever made to the database; each is counted when it has said something."""
    row = connection.execute("SELECT sessions FROM pg_stat_database WHERE datname = current_database()").fetchone()
    assert row
    return int(row[0])


def counted(connection: psycopg.Connection, which: str) -> int:
    row = connection.execute(f"SELECT count(*) FROM pg_stat_activity WHERE {which}").fetchone()
    assert row
    return int(row[0])


@pytest.fixture
def alice(mortal: Stack) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=mortal.url, cookies={"sessionid": mortal.session_of("admin")}, timeout=20) as browser:
        browser.get("/").raise_for_status()
        yield browser


def test_pages_open_no_connection_each(mortal: Stack, alice: httpx.Client) -> None:
    with database_of(mortal) as connection:
        before = opened(connection)
        for _ in range(PAGES):
            alice.get("/").raise_for_status()

        # The sweeper and the workers open some of their own meanwhile.
        assert opened(connection) - before < PAGES / 2


def test_a_page_is_served_after_the_server_ended_every_connection(mortal: Stack, alice: httpx.Client) -> None:
    with database_of(mortal) as connection:
        connection.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {OTHERS}")

    assert alice.get("/").status_code == 200


def test_a_page_is_given_the_connection_that_worked_last(mortal: Stack, alice: httpx.Client) -> None:
    """The others know less of tables and statements. Many are open once many pages were asked for at a time."""
    with database_of(mortal) as connection, ThreadPoolExecutor(PAGES) as together:
        few = counted(connection, OTHERS)
        list(together.map(alice.get, ["/"] * 3 * PAGES))
        fresh = counted(connection, OTHERS) - few
        connection.execute("CREATE TEMPORARY TABLE begun AS SELECT clock_timestamp() AS at")
        for _ in range(PAGES):
            alice.get("/").raise_for_status()

        # The sweeper and the workers use some of their own meanwhile.
        assert counted(connection, f"{OTHERS} AND query_start > (SELECT at FROM begun)") < fresh
