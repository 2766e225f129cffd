"""An MCP server that is out of sorts: it refuses requests for a while, or does what is asked and loses the answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import ToolAnnotations
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from dialogs.agents.tools.mcp_servers import KEY
from tests.standins.serving import serving


@dataclass
class Mood:
    """`opening` and `calls` are how many more of these it refuses, `losing` how many answers to calls it loses."""

    url: str = ""
    opening: int = 0
    calls: int = 0
    losing: int = 0
    retry_after: str = "0"
    # The key of each call that was asked for, and what was done under which key.
    asked: list[str] = field(default_factory=list)
    done: list[tuple[str, str]] = field(default_factory=list)

    def take(self, name: str) -> bool:
        left = getattr(self, name)
        setattr(self, name, max(0, left - 1))
        return bool(left)


@contextmanager
def moody_server() -> Iterator[Mood]:
    mood = Mood()
    app = _server(mood).streamable_http_app(stateless_http=True)
    app.add_middleware(_Moods, mood=mood)
    with serving(app) as address:
        mood.url = f"{address}/mcp"
        yield mood


def _server(mood: Mood) -> MCPServer[Any]:
    server: MCPServer[Any] = MCPServer("moody")

    def note(tool: str, context: Context[Any, Any]) -> str:
        meta: dict[str, Any] = dict(context.request_context.meta or {})
        mood.done.append((tool, meta.get(KEY, "")))
        return f"{tool}: done."

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def look(context: Context[Any, Any]) -> str:
        return note("look", context)

    @server.tool(annotations=ToolAnnotations(idempotent_hint=True))
    def put(context: Context[Any, Any]) -> str:
        return note("put", context)

    @server.tool()
    def buy(context: Context[Any, Any]) -> str:
        return note("buy", context)

    return server


class _Moods:
    def __init__(self, app: ASGIApp, mood: Mood) -> None:
        self.app, self.mood = app, mood

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        message = await receive()
        asked = json.loads(message["body"] or "{}")
        is_call = asked.get("method") == "tools/call"
        if is_call:
            self.mood.asked.append(asked["params"].get("_meta", {}).get(KEY, ""))

        unread = [message]

        async def again() -> Any:
            return unread.pop() if unread else await receive()

        if self.mood.take("calls" if is_call else "opening"):
            await Response("", 503, {"Retry-After": self.mood.retry_after})(scope, again, send)
        elif is_call and self.mood.take("losing"):
            await self.app(scope, again, _nowhere)
            await Response("", 502)(scope, again, send)
        else:
            await self.app(scope, again, send)


async def _nowhere(_message: Any) -> None:
    pass
