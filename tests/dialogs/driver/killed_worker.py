"""A worker in a process of its own that kills itself at a chosen database step, as `kill -9` would.

Each is forked off a server process that has Django loaded and neither threads nor connections, so that forking is
safe. Every step of the driver goes through one adapter; the worker counts there.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from channels.db import DatabaseSyncToAsync
from django.db import connection

from dialogs.driver.tools import registry
from dialogs.driver.tools.base import Arguments, OutsideTool, schema
from dialogs.models import Agent, Dialog
from tests.dialogs.driver.conftest import drive_until_idle

WORKER_SECONDS = 120
forked = multiprocessing.get_context("forkserver")
# The first loads Django for the others. The last ones a worker would import as it goes: each anew, for each is forked.
forked.set_forkserver_preload(
    [
        "tests.django_loaded",
        __name__,
        "channels_redis.core",
        "kombu.transport.redis",
        "celery.events",
        "dialogs.providers.scripted",
        "dialogs.templatetags.dialog_tags",
    ]
)


@dataclass(frozen=True, kw_only=True)
class Kill:
    """Right before or right after its `step`-th database step, counted from 1."""

    step: int
    after: bool = False


def work(dialog: Dialog, *, traces: Path, kill: Kill | None = None) -> bool:
    """Drive the dialog in another process until it rests. False when the worker was killed on the way."""
    worker = forked.Process(target=_live, args=(connection.settings_dict["NAME"], dialog, traces, kill))
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
        _count_steps(kill)
    drive_until_idle(dialog)


def _count_steps(kill: Kill) -> None:
    call = DatabaseSyncToAsync.__call__
    steps = 0

    async def counted(self: DatabaseSyncToAsync, *args: Any, **kwargs: Any) -> Any:
        nonlocal steps
        steps += 1
        mine = steps == kill.step
        if mine and not kill.after:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            return await call(self, *args, **kwargs)
        finally:
            # Also where the step was cancelled, as the look at a stop is when the answer is there.
            if mine:
                os.kill(os.getpid(), signal.SIGKILL)

    DatabaseSyncToAsync.__call__ = counted


def outside_tools(_agent: Agent, traces: Path) -> tuple[OutsideTool, ...]:
    """Two tools that leave a line in a file each time they are really called: one may be repeated, one may not."""
    return (
        _tracing("send_letter", traces, idempotent=False),
        _tracing("look_outside", traces, idempotent=True),
    )


def _tracing(name: str, traces: Path, *, idempotent: bool) -> OutsideTool:
    async def perform(arguments: Arguments) -> str:
        with traces.open("a") as file:
            file.write(f"{name}\n")
        return f"{name}: done."

    return OutsideTool(name=name, description="For tests.", parameters=schema(), perform=perform, idempotent=idempotent)
