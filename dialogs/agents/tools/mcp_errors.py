"""What went wrong with an MCP server, in words for an agent and an admin, with what the server itself said.

A server's own words are quoted with its secrets blacked out: they go to a model, and into a page.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TextIO

import anyio
import httpx2
from django.utils.translation import gettext as _
from mcp import MCPError
from mcp.types import CONNECTION_CLOSED

from dialogs.agents.reads.mcp import secrets_of
from dialogs.agents.tools.base import ToolError, TransientError
from dialogs.common.secrets import KeyUnreadable
from dialogs.models import McpServer
from dialogs.providers.errors import retry_after

KEPT_BYTES = 2_000
QUOTED_CHARS = 300
# HTTP's words for "not now".
BUSY = frozenset({408, 429, 502, 503, 504})


class Overheard(asyncio.Protocol):
    """What a server says beside the protocol: the end of its stderr, whether its stdout held anything but MCP, how it
    answered over HTTP; and whether a session was opened, after which a request may have been heard."""

    def __init__(self) -> None:
        self.stderr = b""
        self.garbage = False
        self.is_open = False
        self.status = 0
        self.retry_after: float | None = None

    def data_received(self, data: bytes) -> None:
        self.stderr = (self.stderr + data)[-KEPT_BYTES:]

    async def hear(self, message: object) -> None:
        self.garbage = self.garbage or isinstance(message, Exception)

    async def note_answer(self, response: httpx2.Response) -> None:
        """Requests go by POST; what else is asked of a server decides nothing."""
        if response.request.method == "POST":
            self.status = response.status_code
            self.retry_after = retry_after(response.headers, now=datetime.now(UTC))

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[TextIO]:
        """A file for the program's stderr. However much is written to it, only the end is kept, and none is logged."""
        reading, writing = os.pipe()
        with os.fdopen(reading, "rb", 0) as ours, os.fdopen(writing, "w") as theirs:
            transport, _protocol = await asyncio.get_running_loop().connect_read_pipe(lambda: self, ours)
            try:
                yield theirs
            finally:
                transport.close()

    @property
    def last_line(self) -> str:
        lines = self.stderr.decode("utf-8", "replace").strip().splitlines()
        return lines[-1][-QUOTED_CHARS:] if lines else ""


def trouble(server: McpServer, error: Exception, overheard: Overheard, *, seconds: float) -> ToolError:
    words = _in_words(server, error, overheard, seconds)
    if not _may_pass(_first(error), overheard):
        return ToolError(words)
    wait = overheard.retry_after if overheard.status in BUSY else None
    return TransientError(words, unsent=not overheard.is_open, retry_after=wait)


def _may_pass(error: BaseException, overheard: Overheard) -> bool:
    """Whether it lies with the way to the server, or with its being busy; not with what was asked of it."""
    match error:
        case httpx2.UnsupportedProtocol() | httpx2.LocalProtocolError():
            return False
        case MCPError(code=code):
            return code == CONNECTION_CLOSED or overheard.status in BUSY
    return isinstance(error, TimeoutError | ConnectionError | httpx2.TransportError | anyio.BrokenResourceError)


def _in_words(server: McpServer, error: Exception, overheard: Overheard, seconds: float) -> str:
    said = [_what_happened(server, _first(error), seconds)]
    if overheard.garbage:
        said.append(_("It wrote something to its output that is not MCP."))
    if overheard.last_line:
        said.append(_("Its last words: %(words)s") % {"words": overheard.last_line})
    return _without_secrets(server, " ".join(said))


def _first(error: BaseException) -> BaseException:
    """The SDK's task groups wrap whatever happened inside them."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _what_happened(server: McpServer, error: BaseException, seconds: float) -> str:
    facts = {"server": server.name, "seconds": f"{seconds:g}", "error": str(error) or type(error).__name__}
    match error:
        case TimeoutError():
            return _("The MCP server %(server)s did not answer within %(seconds)s seconds.") % facts
        case KeyUnreadable():
            return f"{server.name}: {error}"
        case FileNotFoundError() | PermissionError():
            facts["error"] = f"{error.strerror} ({error.filename})"
            return _("The MCP server %(server)s cannot be started: %(error)s.") % facts
        case MCPError(code=code) if code == CONNECTION_CLOSED:
            return _("The MCP server %(server)s ended before it had answered.") % facts
        case MCPError():
            return _("The MCP server %(server)s refused: %(error)s") % facts
    return _("The MCP server %(server)s cannot be used: %(error)s") % facts


def _without_secrets(server: McpServer, text: str) -> str:
    try:
        secrets = secrets_of(server)
    except KeyUnreadable:
        return text
    for secret in sorted(secrets.values(), key=len, reverse=True):
        text = text.replace(secret, "•••") if secret else text
    return text
