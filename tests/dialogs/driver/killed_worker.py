"""A worker in a process of its own that kills itself at a chosen moment, as `kill -9` would.

Each is forked off a server process that has Django loaded and neither threads nor connections, so that forking is
safe. Every database step of the driver goes through one adapter, and every write through one connection: the worker
counts there.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import Counter
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Any
from unittest import mock

from channels.db import DatabaseSyncToAsync
from django.db import connection

from dialogs.agents.tools import registry
from dialogs.agents.tools.base import Arguments, OutsideTool, schema
from dialogs.models import Agent, Dialog
from tests.dialogs.driver.conftest import drive_until_idle

WORKER_SECONDS = 120
forked = multiprocessing.get_context("forkserver")
# The first loads Django for the others. The last ones a worker would import as it goes: each anew, for each is forked.
forked.set_forkserver_preload(
    [
        "tests.django_loaded",
        __name__,
        "dialogs.common.channel_layer",
        "kombu.transport.redis",
        "celery.events",
        "dialogs.providers.scripted",
        "dialogs.templatetags.dialog_tags",
    ]
)


class Moment(Enum):
    BEFORE_STEP = auto()
    AFTER_STEP = auto()
    # In the middle of a step: what its transaction has written by then must be gone.
    BEFORE_WRITE = auto()


@dataclass(frozen=True)
class Kill:
    """At the `number`-th moment of this kind, counted from 1."""

    moment: Moment
    number: int


def work(dialog: Dialog, *, traces: Path, kill: Kill | None = None) -> bool:
    """Drive the dialog in another process until it rests. False when the worker was killed on the way."""
    worker = forked.Process(target=_live, args=(connection.settings_dict["NAME"], dialog, traces, kill))
    with mock.patch.dict(os.environ):
        # The server outlives the tests, and would leave its measure of coverage lying about.
        os.environ.pop("COVERAGE_PROCESS_CONFIG", None)
        worker.start()
    worker.join(WORKER_SECONDS)
    if worker.exitcode not in (0, -signal.SIGKILL):
        worker.kill()
        raise AssertionError(f"The worker with {kill} ended with {worker.exitcode}.")
    return worker.exitcode == 0


def _live(database: str, dialog: Dialog, traces: Path, kill: Kill | None) -> None:
    connection.settings_dict["NAME"] = database
    registry.mcp_tools = lambda agent: outside_tools(agent, traces)
    if kill:
        _lay(kill)
    drive_until_idle(dialog)


def _lay(kill: Kill) -> None:
    """From now on this process counts such moments, and dies at the one that was chosen."""
    call, moments = DatabaseSyncToAsync.__call__, Counter[Moment]()

    def reach(moment: Moment) -> None:
        moments[moment] += 1
        if Kill(moment, moments[moment]) == kill:
            os.kill(os.getpid(), signal.SIGKILL)

    async def step(self: DatabaseSyncToAsync, *args: Any, **kwargs: Any) -> Any:
        reach(Moment.BEFORE_STEP)
        try:
            return await call(self, *args, **kwargs)
        finally:
            # Also where the step was cancelled, as the look at a stop is when the answer is there.
            reach(Moment.AFTER_STEP)

    def statement(execute: Any, sql: str, *rest: Any) -> Any:
        if sql.startswith(("INSERT", "UPDATE", "DELETE")):
            reach(Moment.BEFORE_WRITE)
        return execute(sql, *rest)

    DatabaseSyncToAsync.__call__ = step
    connection.execute_wrappers.append(statement)


def outside_tools(_agent: Agent, traces: Path) -> tuple[OutsideTool, ...]:
    """Two tools that leave a line in a file each time they are really called: one may be repeated, one may not."""
    return (
        _tracing("send_letter", traces, idempotent=False),
        _tracing("look_outside", traces, idempotent=True),
    )


def _tracing(name: str, traces: Path, *, idempotent: bool) -> OutsideTool:
    async def perform(_arguments: Arguments, _key: str) -> str:
        with traces.open("a") as file:
            file.write(f"{name}\n")
        return f"{name}: done."

    return OutsideTool(name=name, description="For tests.", parameters=schema(), perform=perform, idempotent=idempotent)
