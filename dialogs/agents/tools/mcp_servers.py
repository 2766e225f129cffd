"""Speaking to MCP servers: calling a tool, and asking what there is.

Each call has its own session, which is bounded in time and always closed. Every failure of a server becomes a ToolError
with a text for an agent and an admin. Texts of the server are quoted without its secrets, since they go to a model and
into pages.
"""

from __future__ import annotations

import asyncio
import codecs
import errno
import json
import os
import shlex
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, TextIO, TypeVar

import anyio
import httpx2
from django.utils.translation import gettext as _
from mcp import Client, Implementation, MCPError, StdioServerParameters, stdio_client
from mcp.client.stdio import get_default_environment
from mcp.client.streamable_http import streamable_http_client
from mcp.types import (
    CONNECTION_CLOSED,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    TextContent,
    TextResourceContents,
    Tool,
)

from dialogs.agents.reads import secrets_of
from dialogs.agents.tools.base import Arguments, ToolError, TransientError
from dialogs.agents.tools.mcp import LEFT_OUT, MAX_DESCRIPTION_CHARS
from dialogs.agents.tools.schemas import problem_of
from dialogs.agents.writes import record_problem, record_tools
from dialogs.common.leash import LEASH
from dialogs.common.secrets import KeyUnreadable
from dialogs.models import McpServer
from dialogs.providers.base import BadAnswer
from dialogs.providers.errors import retry_after
from dialogs.providers.http import HOOKS, LONGEST_BODY_BYTES, LONGEST_EVENT_BYTES
from dominds import __version__

MAX_RESULT_CHARS = 200_000
MAX_PAGES = 100
MOST_TOOLS = 500
MAX_NAME_CHARS = 200
# Where a call's key stands in the `_meta` of its request.
KEY = "dominds/idempotencyKey"
# A person, or a turn, waits while a server is asked what it has.
LISTING_SECONDS = 30.0
Answer = TypeVar("Answer")
WHO_WE_ARE = Implementation(name="dominds", version=__version__)
KEPT_BYTES = 2_000
QUOTED_CHARS = 300
# HTTP's words for "not now".
BUSY = frozenset({408, 429, 502, 503, 504})


async def call_tool(server: McpServer, name: str, arguments: Arguments, *, key: str = "") -> str:
    """Call a tool; its result as text. Raises ToolError, also when the result says that the tool failed.

    With the key a server can tell a call that is made again from another one.
    """
    meta: Any = {KEY: key} if key else None
    result = await in_session(server, lambda client: client.call_tool(name, dict(arguments), meta=meta))
    text = in_words(result)
    if result.is_error:
        raise ToolError(text)
    return text


def in_words(result: CallToolResult) -> str:
    """The text of a result; other content is named by its kind."""
    text = "\n".join(_block(block) for block in result.content)
    if not result.content and result.structured_content is not None:
        text = json.dumps(result.structured_content, ensure_ascii=False)
    if len(text) > MAX_RESULT_CHARS:
        return f"{text[:MAX_RESULT_CHARS]}\n… (cut: {len(text):,} characters in all)"
    return text or "The tool answered without saying anything."


def _block(block: ContentBlock) -> str:
    match block:
        case TextContent(text=text):
            return text
        case EmbeddedResource(resource=TextResourceContents(text=text)):
            return text
        case EmbeddedResource(resource=inner):
            facts = ["resource", inner.mime_type, str(inner.uri)]
        case _:
            facts = [block.type, block.mime_type, str(getattr(block, "uri", ""))]
    return f"[{', '.join(fact for fact in facts if fact)}]"


async def read_tools(server: McpServer) -> list[dict[str, Any]]:
    """What the server offers, all pages of it. Raises ToolError."""
    tools = await in_session(server, _every_page, seconds=LISTING_SECONDS)
    kept = {"name", "description", "input_schema", "annotations"}
    told = (tool.model_dump(mode="json", by_alias=True, exclude_none=True, include=kept) for tool in tools[:MOST_TOOLS])
    return [*map(_sound, told), *map(_one_too_many, tools[MOST_TOOLS : MOST_TOOLS + 1])]


def _one_too_many(tool: Tool) -> dict[str, Any]:
    """The first tool that is left out because there are too many."""
    why = f"the server has more than {MOST_TOOLS} tools, and none is taken from this one on"
    return {"name": tool.name[:MAX_NAME_CHARS], LEFT_OUT: why}


def _sound(tool: dict[str, Any]) -> dict[str, Any]:
    """The tools as they are recorded: one that cannot be offered keeps its name, and why."""
    name = tool["name"][:MAX_NAME_CHARS]
    if problem := problem_of(tool.get("inputSchema") or {}):
        return {"name": name, LEFT_OUT: problem}
    return tool | {"name": name, "description": (tool.get("description") or "")[:MAX_DESCRIPTION_CHARS]}


async def _every_page(client: Client) -> list[Tool]:
    page = await client.list_tools()
    tools = list(page.tools)
    for _number in range(MAX_PAGES):
        if not page.next_cursor or len(tools) > MOST_TOOLS:
            break
        page = await client.list_tools(cursor=page.next_cursor)
        tools += page.tools
    return tools


Listing = list[dict[str, Any]] | ToolError


async def ask_all(servers: list[McpServer]) -> list[Listing]:
    """The tools of each server, or why they could not be listed."""
    return list(await asyncio.gather(*(_ask(server) for server in servers)))


async def _ask(server: McpServer) -> Listing:
    try:
        return await read_tools(server)
    except ToolError as error:
        return error


def record_all(servers: list[McpServer], listings: list[Listing]) -> None:
    for server, listing in zip(servers, listings, strict=True):
        if isinstance(listing, ToolError):
            record_problem(server=server, problem=str(listing))
        else:
            record_tools(server=server, tools=listing)


async def in_session(
    server: McpServer, work: Callable[[Client], Awaitable[Answer]], *, seconds: float | None = None
) -> Answer:
    """What `work` makes of an open session. Raises ToolError; leaves no process behind."""
    overheard = ServerOutput()
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
    task.exception()  # Retrieved, or asyncio logs that the exception was never retrieved.
    raise cancelled


async def _in_scope(scope: anyio.CancelScope, work: Coroutine[Any, Any, Answer]) -> Answer:
    with scope:
        return await work
    raise TimeoutError


async def _work_in_session(
    server: McpServer, work: Callable[[Client], Awaitable[Answer]], overheard: ServerOutput
) -> Answer:
    with overheard.scope:
        return await _work_with_transport(server, work, overheard)
    raise BadAnswer(overheard.too_much)


async def _work_with_transport(
    server: McpServer, work: Callable[[Client], Awaitable[Answer]], overheard: ServerOutput
) -> Answer:
    async with AsyncExitStack() as stack:
        if server.transport == McpServer.Transport.STDIO:
            errlog = await stack.enter_async_context(overheard.listening())
            _listening.set(overheard)
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
        encoding=BOUNDED,
        # What is not UTF-8 is not MCP either, and is passed over like every other line that is not.
        encoding_error_handler="replace",
    )


# The SDK reads a program's output in an encoding that is named, and holds a line however long it is.
BOUNDED = "utf-8-bounded"
_listening: ContextVar[ServerOutput] = ContextVar("listening")


class BoundedUtf8(codecs.getincrementaldecoder("utf-8")):  # type: ignore[misc]
    """Bounds what a program writes as an answer over HTTP is bounded: one line, and all of a session."""

    def __init__(self, errors: str = "strict") -> None:
        super().__init__(errors)
        self._all = self._line = 0
        self._overheard = _listening.get()

    def decode(self, input: Any, final: bool = False) -> str:  # noqa: A002
        self._all += len(input)
        _before, newline, rest = input.rpartition(b"\n")
        self._line = len(rest) if newline else self._line + len(input)
        if self._line > LONGEST_EVENT_BYTES:
            self._overheard.refuse(f"More than {LONGEST_EVENT_BYTES:,} bytes came in one line.")
        if self._all > LONGEST_BODY_BYTES:
            self._overheard.refuse(f"The answer is larger than {LONGEST_BODY_BYTES:,} bytes.")
        return "" if self._overheard.too_much else str(super().decode(input, final))


def _bounded_codec(name: str) -> codecs.CodecInfo | None:
    if name.replace("_", "-") != BOUNDED:
        return None
    return codecs.CodecInfo(codecs.utf_8_encode, codecs.utf_8_decode, incrementaldecoder=BoundedUtf8, name=BOUNDED)


codecs.register(_bounded_codec)


class ServerOutput(asyncio.Protocol):
    """What a server says beside the protocol: the end of its stderr, whether its stdout held anything but MCP, how it
    answered over HTTP; and whether a session was opened, after which a request may have been heard."""

    def __init__(self) -> None:
        self.stderr = b""
        self.garbage = False
        self.is_open = False
        self.status = 0
        self.retry_after: float | None = None
        self.scope, self.too_much = anyio.CancelScope(), ""

    def refuse(self, why: str) -> None:
        """End the session at once, for this reason; later ones do not replace it."""
        self.too_much = self.too_much or why
        self.scope.cancel()

    def data_received(self, data: bytes) -> None:
        self.stderr = (self.stderr + data)[-KEPT_BYTES:]

    async def hear(self, message: object) -> None:
        self.garbage = self.garbage or isinstance(message, Exception)

    async def note_answer(self, response: httpx2.Response) -> None:
        """Note the response's status. Only POSTs count: MCP requests go by POST."""
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


def trouble(server: McpServer, error: Exception, overheard: ServerOutput, *, seconds: float) -> ToolError:
    words = _in_words(server, error, overheard, seconds)
    if not _may_pass(_first(error), overheard):
        return ToolError(words)
    wait = overheard.retry_after if overheard.status in BUSY else None
    return TransientError(words, unsent=not overheard.is_open, retry_after=wait)


def _may_pass(error: BaseException, overheard: ServerOutput) -> bool:
    """May the failure pass by itself? Where the connection failed or the server is busy, not where it refused."""
    match error:
        case httpx2.UnsupportedProtocol() | httpx2.LocalProtocolError():
            return False
        case MCPError(code=code):
            return code == CONNECTION_CLOSED or overheard.status in BUSY
    return isinstance(error, TimeoutError | ConnectionError | httpx2.TransportError | anyio.BrokenResourceError)


def _in_words(server: McpServer, error: Exception, overheard: ServerOutput, seconds: float) -> str:
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
