"""The tools of MCP servers that an agent is offered, and asking the servers again what they have.

What an agent is offered is read from the rows, so that a turn never waits for a server that it does not call.
The SDK takes more than a second to load: `mcp_servers.py`, which speaks to servers, is loaded when one is needed.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping
from importlib import import_module
from itertools import count
from typing import Any

from dialogs.agents.reads import servers_of
from dialogs.agents.tools.base import Arguments, OutsideTool
from dialogs.common.threads import in_db
from dialogs.models import Agent, McpServer
from health.compaction.reading.importance import is_ui_tool

logger = logging.getLogger(__name__)

# What providers take as a tool's name.
NAME_CHARS = 64
MAX_DESCRIPTION_CHARS = 4_000
# The key under which the record of a tool says why the tool is not offered.
LEFT_OUT = "leftOut"
# What closing a session may take beyond the server's own time.
CLOSING_SECONDS = 10.0
# Said of a tree of elements where the same server can take a picture: the tree is large, and can be asked for any time.
IF_A_SCREENSHOT_DOES_NOT_SUFFICE = (
    "Do not call this if a screenshot suffices; call it when three actions by screenshot have failed in a row."
)


def mcp_tools(agent: Agent) -> tuple[OutsideTool, ...]:
    """The tools of the agent's enabled servers, as they were when each was last asked. No server is called."""
    taken: set[str] = set()
    return tuple(
        _tool(server, described, _free_name(f"{server.name}__{described['name']}", taken))
        for server in servers_of(agent)
        for described in server.tools
        if LEFT_OUT not in described
    )


def _description(server: McpServer, described: Mapping[str, Any]) -> str:
    said: str = (described.get("description") or "")[:MAX_DESCRIPTION_CHARS]
    can_show = any("screenshot" in tool["name"].lower() for tool in server.tools)
    hint = IF_A_SCREENSHOT_DOES_NOT_SUFFICE if can_show and is_ui_tool(described["name"]) else ""
    return "\n".join(filter(None, (said, hint)))


def _tool(server: McpServer, described: Mapping[str, Any], name: str) -> OutsideTool:
    async def perform(arguments: Arguments, key: str) -> str:
        await loaded()
        from dialogs.agents.tools.mcp_servers import call_tool

        return await call_tool(server, described["name"], arguments, key=key)

    hints = described.get("annotations") or {}
    read_only = hints.get("readOnlyHint") is True
    return OutsideTool(
        name=name,
        description=_description(server, described),
        parameters={"type": "object", "properties": {}} | (described.get("inputSchema") or {}),
        perform=perform,
        own_name=described["name"],
        idempotent=read_only or hints.get("idempotentHint") is True,
        parallel=read_only,
        timeout_seconds=server.timeout_seconds + CLOSING_SECONDS,
    )


def _free_name(name: str, taken: set[str]) -> str:
    """The name in characters that providers accept, cut to their length, and unique."""
    clean = re.sub(r"[^a-zA-Z0-9_-]", "_", name)
    endings = (f"_{number}" if number > 1 else "" for number in count(1))
    free = next(found for end in endings if (found := clean[: NAME_CHARS - len(end)] + end) not in taken)
    taken.add(free)
    return free


async def loaded() -> None:
    """Import `mcp_servers` and its SDK on another thread: the import would block all turns of this event loop."""
    await asyncio.to_thread(import_module, "dialogs.agents.tools.mcp_servers")


async def refresh(servers: list[McpServer]) -> None:
    """Ask these servers for their tools; store each list, or why it could not be read. Never raises."""
    try:
        await loaded()
        from dialogs.agents.tools.mcp_servers import ask_all, record_all

        await in_db(record_all)(servers, await ask_all(servers))
    except Exception:
        logger.exception("MCP servers could not be asked: %s", ", ".join(one.name for one in servers))
