"""MCP servers for tests, run as programs: `python mcp_servers.py HOW ...`. They behave, and misbehave, for real.

All but `sdk PID_FILE` and `http PORT` are written by hand, and know the older handshake only: the SDK takes seconds to
load, and each call starts a program.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

NOT_FOUND = {"error": {"code": -32601, "message": "Method not found"}}


# --- The tools of `stdio` and `chatty` -----------------------------------------------------------
def text(said: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}], **more}


def add(first: int, second: int) -> dict[str, Any]:
    """Add two numbers."""
    return text(str(first + second))


def environment(name: str) -> dict[str, Any]:
    return text(os.environ.get(name, "not set"))


def scattered() -> dict[str, Any]:
    return text("what its schema refers to is elsewhere")


def fail() -> dict[str, Any]:
    return text("the printer is on fire", isError=True)


def picture() -> dict[str, Any]:
    image = {"type": "image", "data": "bm90IHJlYWxseQ==", "mimeType": "image/png"}
    return {"content": [*text("Here it is:")["content"], image]}


def long_text() -> dict[str, Any]:
    return text("x" * 300_000)


def die() -> dict[str, Any]:
    os.write(2, b"out of paper\n")
    os._exit(3)


def hang() -> dict[str, Any]:
    time.sleep(600)
    return text("too late")


def takes(**types: str) -> dict[str, Any]:
    properties = {name: {"type": one} for name, one in types.items()}
    return {"type": "object", "properties": properties, "required": list(types)}


TOOLS = {tool.__name__: tool for tool in (add, environment, scattered, fail, picture, long_text, die, hang)}
SCHEMAS = {
    "add": takes(first="integer", second="integer"),
    "environment": takes(name="string"),
    "scattered": {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/latest/meta-data"}}},
}


def listed(name: str, tool: Callable[..., Any]) -> dict[str, Any]:
    more = {"annotations": {"readOnlyHint": True}} if tool is add else {}
    return {"name": name, "description": tool.__doc__ or "", "inputSchema": SCHEMAS.get(name, takes()), **more}


def all_of_them(_cursor: str | None) -> dict[str, Any]:
    return {"tools": [listed(*one) for one in TOOLS.items()]}


def call(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return TOOLS[name](**arguments) if name in TOOLS else text(f"Unknown tool: {name}", isError=True)


# --- The ways ------------------------------------------------------------------------------------
def begin(pid_file: str) -> None:
    Path(pid_file).write_text(str(os.getpid()))


def answer_requests(tools: Callable[[str | None], dict[str, Any]]) -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            answer = reply(request["method"], request.get("params") or {}, tools)
            # Not `os.write`, which a long answer fills the pipe of.
            print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}), flush=True)  # noqa: T201


def reply(method: str, params: Mapping[str, Any], tools: Callable[[str | None], dict[str, Any]]) -> dict[str, Any]:
    match method:
        case "initialize":
            about = {"serverInfo": {"name": "old", "version": "1"}, "capabilities": {"tools": {}}}
            return {"result": about | {"protocolVersion": params["protocolVersion"]}}
        case "tools/list":
            return {"result": tools(params.get("cursor"))}
        case "tools/call":
            return {"result": call(params["name"], params.get("arguments") or {})}
    return NOT_FOUND


def stdio(pid_file: str) -> None:
    begin(pid_file)
    answer_requests(all_of_them)


def chatty(pid_file: str) -> None:
    """Greet people on stdout, which is a mistake that many make, and then serve."""
    os.write(1, b"Welcome to my server!\n")
    stdio(pid_file)


def pages(pid_file: str) -> None:
    """List three tools on three pages."""
    begin(pid_file)
    answer_requests(one_of_three)


def one_of_three(cursor: str | None) -> dict[str, Any]:
    number = int(cursor or 1)
    more = {"nextCursor": str(number + 1)} if number < 3 else {}
    return {"tools": [{"name": f"tool{number}", "inputSchema": {"type": "object"}}]} | more


def garbage(pid_file: str) -> None:
    """Print what is no MCP, for ever, to both outputs."""
    begin(pid_file)
    while True:
        os.write(1, b"\xff\x00 Welcome to my server! {}\n")
        os.write(2, b"noise\n" * 1000)


def endless(pid_file: str) -> None:
    """Begin a line that never ends."""
    begin(pid_file)
    while True:
        os.write(1, b"x" * 65_536)


def deaf(pid_file: str) -> None:
    """Hear nothing: no request, no end of input, no polite request to stop."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    begin(pid_file)
    time.sleep(600)


def complain(pid_file: str) -> None:
    """End at once, with a complaint that holds a secret."""
    begin(pid_file)
    sys.exit(f"The token {os.environ.get('TOKEN')} is not valid")


def sdk(pid_file: str) -> None:
    begin(pid_file)
    from made_with_sdk import server

    server.run("stdio")


def http(port: str) -> None:
    from made_with_sdk import server

    server.run("streamable-http", port=int(port))


if __name__ == "__main__":
    ways = {way.__name__: way for way in (stdio, chatty, pages, garbage, endless, deaf, complain, sdk, http)}
    ways[sys.argv[1]](sys.argv[2])
