"""Speaking to MCP servers: calling a tool, and asking what there is. Each call has a session of its own."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from mcp import Client
from mcp.types import CallToolResult, ContentBlock, EmbeddedResource, TextContent, TextResourceContents, Tool

from dialogs.agents.tools.base import Arguments, ToolError
from dialogs.agents.tools.mcp import LEFT_OUT, MAX_DESCRIPTION_CHARS
from dialogs.agents.tools.mcp_session import in_session
from dialogs.agents.tools.schemas import problem_of
from dialogs.agents.writes.mcp import record_problem, record_tools
from dialogs.models import McpServer

MAX_RESULT_CHARS = 200_000
MAX_PAGES = 100
MOST_TOOLS = 500
MAX_NAME_CHARS = 200
# Where a call's key stands in the `_meta` of its request.
KEY = "dominds/idempotencyKey"
# A person, or a turn, waits while a server is asked what it has.
LISTING_SECONDS = 30.0


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
    told = (tool.model_dump(mode="json", by_alias=True, exclude_none=True, include=kept) for tool in tools[:MOST_TOOLS])
    return [_sound(tool) for tool in told]


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
        if not page.next_cursor or len(tools) >= MOST_TOOLS:
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
