"""What went wrong with an MCP server, in words for an agent and an admin, with what the server itself said.

A server's own words are quoted with its secrets blacked out: they go to a model, and into a page.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TextIO

from django.utils.translation import gettext as _
from mcp import MCPError
from mcp.types import CONNECTION_CLOSED

from dialogs.driver.tools.base import ToolError
from dialogs.models import McpServer
from dialogs.secrets import KeyUnreadable
from dialogs.selectors.mcp import secrets_of

KEPT_BYTES = 2_000
QUOTED_CHARS = 300


class Overheard(asyncio.Protocol):
    """What a server says beside the protocol: the end of its stderr, and whether its stdout held anything but MCP."""

    def __init__(self) -> None:
        self.stderr = b""
        self.garbage = False

    def data_received(self, data: bytes) -> None:
        self.stderr = (self.stderr + data)[-KEPT_BYTES:]

    async def hear(self, message: object) -> None:
        self.garbage = self.garbage or isinstance(message, Exception)

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
    said = [_what_happened(server, _first(error), seconds)]
    if overheard.garbage:
        said.append(_("It wrote something to its output that is not MCP."))
    if overheard.last_line:
        said.append(_("Its last words: %(words)s") % {"words": overheard.last_line})
    return ToolError(_without_secrets(server, " ".join(said)))


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
