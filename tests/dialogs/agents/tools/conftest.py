"""An agent with MCP servers that run for real: as programs, and one at an address on this machine."""

from __future__ import annotations

import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from dialogs.models import Agent, McpServer
from tests.dialogs.driver.conftest import play  # noqa: F401  a fixture
from tests.environment import free_port

PROGRAM = Path(__file__).with_name("mcp_servers.py")


class MakeServer(Protocol):
    def __call__(self, how: str = ..., **fields: object) -> McpServer: ...


@pytest.fixture
def pid_file(tmp_path: Path) -> Path:
    """Where a program of ours says which process it is."""
    return tmp_path / "pid"


@pytest.fixture
def make_server(agent: Agent, pid_file: Path) -> MakeServer:
    """Give the agent a server that is our test program, run in one of its ways."""

    def make(how: str = "stdio", **fields: object) -> McpServer:
        command = shlex.join([sys.executable, str(PROGRAM), how, str(pid_file)])
        values: dict[str, object] = {"name": "lab", "transport": "stdio", "command": command, "timeout_seconds": 30}
        server = McpServer.objects.create(**(values | fields))
        agent.mcp_servers.add(server)
        return server

    return make


@pytest.fixture(scope="session")
def web_address() -> Iterator[str]:
    """The test server at an address, for as long as the tests run."""
    port = free_port()
    process = subprocess.Popen([sys.executable, PROGRAM, "http", str(port)], stderr=subprocess.DEVNULL)
    try:
        wait_for_port(port)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(10)


def wait_for_port(port: int) -> None:
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("The MCP server did not start.")
