"""One session with an MCP server: opened for one piece of work, bounded in time, and closed whatever happens.

Nothing is shared between calls, because every turn has an event loop of its own. All that can go wrong
with a server becomes a ToolError in words; `mcp_errors.py` has them.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shlex
import shutil
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any, TypeVar

import anyio
import httpx2
from mcp import Client, Implementation, StdioServerParameters, stdio_client
from mcp.client.stdio import get_default_environment
from mcp.client.streamable_http import streamable_http_client

from dialogs.agents.reads.mcp import secrets_of
from dialogs.agents.tools.mcp_errors import Overheard, trouble
from dialogs.common.leash import LEASH
from dialogs.models import McpServer
from dialogs.providers.bounds import HOOKS
from dominds import __version__

Answer = TypeVar("Answer")
WHO_WE_ARE = Implementation(name="dominds", version=__version__)


async def in_session(
    server: McpServer, work: Callable[[Client], Awaitable[Answer]], *, seconds: float | None = None
) -> Answer:
    """What `work` makes of an open session. Raises ToolError; leaves no process behind."""
    overheard = Overheard()
    seconds = min(seconds or server.timeout_seconds, server.timeout_seconds)
    try:
        return await bounded(_work_in_session(server, work, overheard), seconds)
    except Exception as error:
        raise trouble(server, error, overheard, seconds=seconds) from error


async def bounded(work: Coroutine[Any, Any, Answer], seconds: float) -> Answer:
    """The answer, or TimeoutError. Whoever cancels has to wait until the work has cleaned up behind itself.

    The SDK shields its cleaning up from its own kind of cancelling, but not from asyncio's: that is why the
    work has a task to itself, which nobody cancels in asyncio's way.
    """
    scope = anyio.CancelScope(deadline=anyio.current_time() + seconds)
    task = asyncio.create_task(_in_scope(scope, work))
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
            scope.cancel()
    if cancelled is None:
        return task.result()
    task.exception()  # Looked at, or asyncio complains that nobody did.
    raise cancelled


async def _in_scope(scope: anyio.CancelScope, work: Coroutine[Any, Any, Answer]) -> Answer:
    with scope:
        return await work
    raise TimeoutError


async def _work_in_session(
    server: McpServer, work: Callable[[Client], Awaitable[Answer]], overheard: Overheard
) -> Answer:
    async with AsyncExitStack() as stack:
        if server.transport == McpServer.Transport.STDIO:
            errlog = await stack.enter_async_context(overheard.listening())
            transport = stdio_client(_program(server), errlog=errlog)
        else:
            http = httpx2.AsyncClient(
                headers=secrets_of(server),
                timeout=server.timeout_seconds,
                event_hooks={**HOOKS, "response": [overheard.note_answer, *HOOKS["response"]]},
            )
            await stack.enter_async_context(http)
            transport = streamable_http_client(server.url, http_client=http)
        client = Client(transport, client_info=WHO_WE_ARE, message_handler=overheard.hear, cache=None)
        session = await stack.enter_async_context(client)
        overheard.is_open = True
        return await work(session)


def _program(server: McpServer) -> StdioServerParameters:
    """The command on a leash: it ends with us even when we are killed. It gets a bare environment and its secrets."""
    secrets = secrets_of(server)
    program, *arguments = shlex.split(server.command)
    if not shutil.which(program, path=(get_default_environment() | secrets).get("PATH")):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)
    leash = ["-I", "-S", LEASH, str(os.getpid())]
    return StdioServerParameters(
        command=sys.executable,
        args=[*leash, program, *arguments],
        env=secrets,
        # What is not UTF-8 is not MCP either, and is passed over like every other line that is not.
        encoding_error_handler="replace",
    )
