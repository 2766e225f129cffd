"""MCP servers for tests, run as programs: `python mcp_servers.py HOW ...`. They behave, and misbehave, for real.

`stdio PID_FILE` and `http PORT` are made with the SDK; the others are what a broken program does.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

server = MCPServer("test")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(first: int, second: int) -> int:
    """Add two numbers."""
    return first + second


@server.tool()
def environment(name: str) -> str:
    return os.environ.get(name, "not set")


@server.tool()
def header(name: str, context: Context) -> str:
    return (context.headers or {}).get(name, "not sent")


@server.tool()
def scattered() -> str:
    return "what its schema refers to is elsewhere"


ELSEWHERE = {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/latest/meta-data"}}}
server._tool_manager._tools["scattered"].parameters = ELSEWHERE


@server.tool()
def fail() -> str:
    raise ToolError("the printer is on fire")


@server.tool(structured_output=False)
def picture() -> list[Any]:
    return ["Here it is:", Image(data=b"not really", format="png")]


@server.tool()
def long_text() -> str:
    return "x" * 300_000


@server.tool()
def die() -> str:
    os.write(2, b"out of paper\n")
    os._exit(3)


@server.tool()
def hang() -> str:
    time.sleep(600)
    return "too late"


def serve(pid_file: str) -> None:
    Path(pid_file).write_text(str(os.getpid()))
    server.run("stdio")


def garbage(pid_file: str) -> None:
    """Print what is no MCP, for ever, to both outputs."""
    Path(pid_file).write_text(str(os.getpid()))
    while True:
        os.write(1, b"\xff\x00 Welcome to my server! {}\n")
        os.write(2, b"noise\n" * 1000)


def deaf(pid_file: str) -> None:
    """Hear nothing: no request, no end of input, no polite request to stop."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Path(pid_file).write_text(str(os.getpid()))
    time.sleep(600)


def complain(pid_file: str) -> None:
    """End at once, with a complaint that holds a secret."""
    Path(pid_file).write_text(str(os.getpid()))
    sys.exit(f"The token {os.environ.get('TOKEN')} is not valid")


def chatty(pid_file: str) -> None:
    """Greet people on stdout, which is a mistake that many make, and then serve."""
    os.write(1, b"Welcome to my server!\n")
    serve(pid_file)


def pages(pid_file: str) -> None:
    """Know the older handshake only, and list three tools on three pages. Written by hand."""
    Path(pid_file).write_text(str(os.getpid()))
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            answer = {"jsonrpc": "2.0", "id": request["id"], **reply(request["method"], request.get("params", {}))}
            os.write(1, json.dumps(answer).encode() + b"\n")


def reply(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        about = {"serverInfo": {"name": "old", "version": "1"}, "capabilities": {"tools": {}}}
        return {"result": about | {"protocolVersion": params["protocolVersion"]}}
    if method == "tools/list":
        number = int(params.get("cursor") or 1)
        more = {"nextCursor": str(number + 1)} if number < 3 else {}
        return {"result": {"tools": [{"name": f"tool{number}", "inputSchema": {"type": "object"}}]} | more}
    return {"error": {"code": -32601, "message": "Method not found"}}


def http(port: str) -> None:
    server.run("streamable-http", port=int(port))


if __name__ == "__main__":
    ways = {"stdio": serve} | {way.__name__: way for way in (http, pages, garbage, deaf, complain, chatty)}
    ways[sys.argv[1]](sys.argv[2])
