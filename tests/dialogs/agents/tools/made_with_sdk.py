"""An MCP server as the SDK makes one: at an address, and as a program (`mcp_servers.py`)."""

from __future__ import annotations

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("test")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(first: int, second: int) -> int:
    """Add two numbers."""
    return first + second


@server.tool()
def header(name: str, context: Context) -> str:
    return (context.headers or {}).get(name, "not sent")
