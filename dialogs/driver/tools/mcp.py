"""The tools of MCP servers: what an agent is offered, calling one, and asking the servers what they have.

What an agent is offered is read from the rows, so that a turn never waits for a server that it does not
call. Each call opens a session of its own (`mcp_session.py`).
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Mapping
from itertools import count
from typing import Any

from mcp import Client
from mcp.types import CallToolResult, ContentBlock, EmbeddedResource, TextContent, TextResourceContents, Tool

from dialogs.driver.tools.base import Arguments, OutsideTool, ToolError
from dialogs.driver.tools.mcp_session import in_session
from dialogs.models import Agent, McpServer
from dialogs.selectors.mcp import servers_of, servers_to_ask
from dialogs.services.mcp import record_problem, record_tools
from dialogs.threads import in_db

logger = logging.getLogger(__name__)

# What providers take as a tool's name.
NAME_CHARS = 64
MAX_DESCRIPTION_CHARS = 4_000
MAX_RESULT_CHARS = 200_000
MAX_PAGES = 100
# Where a call's key stands in the `_meta` of its request.
KEY = "dominds/idempotencyKey"
# A person, or a turn, waits while a server is asked what it has.
LISTING_SECONDS = 30.0
# What closing a session may take beyond the server's own time.
CLOSING_SECONDS = 10.0


def mcp_tools(agent: Agent) -> tuple[OutsideTool, ...]:
    """The tools of the agent's enabled servers, as they were when each was last asked. No server is called."""
    taken: set[str] = set()
    return tuple(
        _tool(server, described, _free_name(f"{server.name}__{described['name']}", taken))
        for server in servers_of(agent)
        for described in server.tools
    )


def _tool(server: McpServer, described: Mapping[str, Any], name: str) -> OutsideTool:
    async def perform(arguments: Arguments, key: str) -> str:
        return await call_tool(server, described["name"], arguments, key=key)

    hints = described.get("annotations") or {}
    read_only = hints.get("readOnlyHint") is True
    return OutsideTool(
        name=name,
        description=(described.get("description") or "")[:MAX_DESCRIPTION_CHARS],
        parameters={"type": "object", "properties": {}} | (described.get("inputSchema") or {}),
        perform=perform,
        own_name=described["name"],
        idempotent=read_only or hints.get("idempotentHint") is True,
        parallel=read_only,
        timeout_seconds=server.timeout_seconds + CLOSING_SECONDS,
    )


def _free_name(name: str, taken: set[str]) -> str:
    """The name in the signs that providers take, cut to their length, and given once."""
    clean = re.sub(r"[^a-zA-Z0-9_-]", "_", name)
    endings = (f"_{number}" if number > 1 else "" for number in count(1))
    free = next(found for end in endings if (found := clean[: NAME_CHARS - len(end)] + end) not in taken)
    taken.add(free)
    return free


async def call_tool(server: McpServer, name: str, arguments: Arguments, *, key: str = "") -> str:
    """What the tool answered, as text. Raises ToolError, also when the tool says that it failed.

    With the key a server can tell a call that is made again from another one.
    """
    meta: Any = {KEY: key} if key else None
    result = await in_session(server, lambda client: client.call_tool(name, dict(arguments), meta=meta))
    text = in_words(result)
    if result.is_error:
        raise ToolError(text)
    return text


def in_words(result: CallToolResult) -> str:
    """The text of an answer; what is no text is named."""
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
    return [tool.model_dump(mode="json", by_alias=True, exclude_none=True, include=kept) for tool in tools]


async def _every_page(client: Client) -> list[Tool]:
    page = await client.list_tools()
    tools = list(page.tools)
    for _number in range(MAX_PAGES):
        if not page.next_cursor:
            break
        page = await client.list_tools(cursor=page.next_cursor)
        tools += page.tools
    return tools


Listing = list[dict[str, Any]] | ToolError


async def ask_all(servers: list[McpServer]) -> list[Listing]:
    """What each of these offers, or why it could not be asked."""
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


async def refresh_stale(agent: Agent) -> None:
    """Ask those of the agent's servers that were never asked, or failed some minutes ago. Never raises."""
    try:
        servers = await in_db(lambda: list(servers_to_ask(agent)))()
        if servers:
            await in_db(record_all)(servers, await ask_all(servers))
    except Exception:
        logger.exception("The MCP servers of the agent %s could not be asked.", agent.slug)
