"""A real `manage.py up` for tests: its own data folder, port and database, stopped in the end."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import httpx
import psycopg

from tests.environment import free_port, on_a_leash
from tests.migrated import DATABASE, migrated
from tests.shell import ROOT, Shell

START_SECONDS = 180.0
# Quick, so that a test that kills a worker does not wait half a minute for its lease.
QUICK = {
    "DOMINDS_LEASE_SECONDS": "3",
    "DOMINDS_SWEEP_SECONDS": "1",
    "DOMINDS_SCRIPTED": "yes",
    "DOMINDS_BACKOFF_BASE_SECONDS": "0.1",
    "DOMINDS_WEB_PROCESSES": "1",
}
SIGN_IN = """
from django.contrib.auth.models import User
from django.test import Client
client = Client()
client.force_login(User.objects.get(username={name!r}))
print(client.cookies["sessionid"].value)
"""
# Settings of the machine, or of the test run, that a stack must not inherit.
FOREIGN = re.compile(r"DOMINDS_.*|DATABASE_URL|REDIS_URL|DJANGO_SETTINGS_MODULE|.*_API_KEY")


@dataclass(kw_only=True)
class Stack:
    """A running `up`, or one that has ended."""

    process: subprocess.Popen[str]
    environment: Mapping[str, str]
    data_dir: Path
    url: str
    _shell: Shell | None = field(default=None, init=False)

    @property
    def output(self) -> str:
        """What it printed for people: the line with the address."""
        return (self.data_dir / "stdout").read_text()

    @property
    def sign_in_url(self) -> str:
        return self.output.split()[-1]

    def log(self) -> str:
        return (self.data_dir / "stderr").read_text()

    def pid(self, name: str) -> int:
        """The process of one child: valkey, demo, turns, web."""
        return int((self.data_dir / "run" / f"{name}.pid").read_text())

    def pids(self) -> list[int]:
        return [int(path.read_text()) for path in (self.data_dir / "run").glob("*.pid")]

    def run_manage(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """A `manage.py` command beside the running processes."""
        return manage(*arguments, environment=self.environment, check=check)

    def shell(self, code: str) -> str:
        """Run Python in Django's shell; what it printed."""
        self._shell = self._shell or Shell(self.environment)
        return self._shell.run(code)

    def session_of(self, name: str) -> str:
        """The cookie of a person who signed in another day. Typed, it would cost three pages and a password's hash."""
        return self.shell(SIGN_IN.format(name=name))

    def wait_until(self, happened: Callable[[], bool], *, seconds: float = 90) -> None:
        deadline = time.monotonic() + seconds
        while not happened():
            assert time.monotonic() < deadline, f"It did not happen within {seconds} s. The log:\n{self.log()}"
            time.sleep(0.1)

    def wait_for_line(self, text: str, *, seconds: float = 90) -> None:
        self.wait_until(lambda: text in self.log(), seconds=seconds)

    def answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/healthz", timeout=1).text == "ok"
        except httpx.HTTPError:
            return False

    def stop(self, number: int = signal.SIGINT) -> int:
        """Ask it to stop and wait; its exit status."""
        if self._shell:
            self._shell.close()
            self._shell = None
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(30)


def manage(*arguments: str, environment: Mapping[str, str], check: bool = True) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env={**environment}, capture_output=True, text=True, check=check, timeout=START_SECONDS
    )


def settings_of(data_dir: Path, **settings: str) -> dict[str, str]:
    """The environment of a process on this data folder, and on nothing else of this machine."""
    inherited = {name: value for name, value in os.environ.items() if not FOREIGN.fullmatch(name)}
    return {**inherited, "DOMINDS_DATA_DIR": str(data_dir), **settings}


@contextmanager
def running_stack(
    data_dir: Path, *options: str, wait: bool = True, migrates: bool = False, folder: Path = ROOT, **settings: str
) -> Iterator[Stack]:
    """`manage.py up` with these options and settings, ready to be asked unless told not to wait."""
    port = free_port()
    data_dir.mkdir(parents=True, exist_ok=True)
    with fresh_database() as database:
        if not (database or migrates or "DATABASE_URL" in settings or (data_dir / DATABASE).exists()):
            shutil.copy(migrated(), data_dir)
        environment = settings_of(data_dir, **{**QUICK, **database, "DOMINDS_PORT": str(port), **settings})
        with (data_dir / "stdout").open("w") as stdout, (data_dir / "stderr").open("w") as stderr:
            process = subprocess.Popen(
                # However this test run ends, nothing of it stays behind.
                [*on_a_leash(), sys.executable, str(ROOT / "manage.py"), "up", *options],
                cwd=folder,
                env=environment,
                stdout=stdout,
                stderr=stderr,
                text=True,
                # A Ctrl-C at the terminal is for pytest; the fixture then stops this.
                start_new_session=True,
            )
        stack = Stack(process=process, environment=environment, data_dir=data_dir, url=f"http://127.0.0.1:{port}")
        try:
            if wait:
                stack.wait_until(lambda: "\n" in stack.output or process.poll() is not None, seconds=START_SECONDS)
                assert process.poll() is None, stack.log()
            yield stack
        finally:
            stack.stop()


@contextmanager
def fresh_database() -> Iterator[dict[str, str]]:
    """On PostgreSQL every stack has a database of its own; on SQLite its data folder is one."""
    server = os.environ.get("DATABASE_URL", "")
    if not server.startswith("postgres"):
        yield {}
        return
    name = f"stack_{uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        try:
            yield {"DATABASE_URL": urlsplit(server)._replace(path=f"/{name}").geturl()}
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
