"""The MCP server in a real Daphne, and as a program that a client starts: what only real processes can show."""

from __future__ import annotations

import json
import subprocess
import sys

import httpx2
import pytest
from asgiref.sync import async_to_sync
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.clients.conftest import Served
from tests.dialogs.mcp_server.conftest import text_of
from tests.stack import ROOT, Stack

pytestmark = pytest.mark.stack

ALICES = """
from django.contrib.auth.models import User
from django.utils import timezone
from dialogs.models import *
from dialogs.turns.writes.messages import post_message
alice, bob = User.objects.get(username="alice"), User.objects.create_user("bob")
provider = Provider.objects.create(name="off", kind="scripted", base_url="off.json", enabled=False)
llm = LLM.objects.create(provider=provider, model_id="tiny")
agent = Agent.objects.create(name="Silent", slug="silent", llm=llm)
dialog = Dialog.objects.create(owner=alice, agent=agent, llm=llm, active_at=timezone.now())
Course.objects.create(dialog=dialog, number=1)
post_message(dialog=dialog, content="How do pumps work?")
"""
INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
MANAGE = [sys.executable, "manage.py", "mcp"]


@pytest.fixture(scope="module")
def world(served: Served) -> Stack:
    served.stack.shell(ALICES)
    return served.stack


def key_of(world: Stack, name: str) -> str:
    return world.run_manage("apikey", "create", "Laptop", "--user", name, "--quiet").stdout.strip()


async def dialogs_at(server: object) -> str:
    async with Client(server, cache=None) as client:  # type: ignore[arg-type]
        return text_of(await client.call_tool("list_dialogs", {}))


@async_to_sync
async def dialogs_over_http(world: Stack, secret: str) -> str:
    async with httpx2.AsyncClient(headers={"authorization": f"Bearer {secret}"}) as http:
        return await dialogs_at(streamable_http_client(f"{world.url}/mcp", http_client=http))


def test_daphne_answers_each_key_with_its_owners_dialogs(world: Stack) -> None:
    alices, bobs = key_of(world, "alice"), key_of(world, "bob")

    assert "pumps work" in dialogs_over_http(world, alices)
    assert dialogs_over_http(world, bobs) == "There are no such dialogs."
    assert httpx2.post(f"{world.url}/mcp", json={}).status_code == 401
    # The pages beside it are still there.
    assert world.answers()


@async_to_sync
async def before_and_after_revoking(world: Stack, secret: str) -> tuple[str, str]:
    program = StdioServerParameters(
        command=MANAGE[0], args=MANAGE[1:], cwd=ROOT, env={**world.environment, "DOMINDS_API_KEY": secret}
    )
    async with Client(program, cache=None) as client:
        before = text_of(await client.call_tool("list_dialogs", {}))
        world.run_manage("apikey", "revoke", secret)
        return before, text_of(await client.call_tool("list_dialogs", {}))


def test_a_program_is_refused_from_the_moment_its_key_is_revoked(world: Stack) -> None:
    before, after = before_and_after_revoking(world, key_of(world, "alice"))

    assert "pumps work" in before
    assert "revoked" in after


def test_nothing_but_the_protocol_is_on_stdout_and_it_ends_with_its_input(world: Stack) -> None:
    requests = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "list_dialogs", "arguments": {}}},
    ]
    program = subprocess.Popen(
        [*MANAGE, "--user", "alice"],
        cwd=ROOT,
        env={**world.environment, "DOMINDS_LOG_LEVEL": "DEBUG"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with program:
        assert program.stdin
        assert program.stdout
        program.stdin.write("\n".join(map(json.dumps, requests)) + "\n")
        program.stdin.flush()
        answers = [json.loads(program.stdout.readline()) for _ in range(2)]
        rest, log = program.communicate(timeout=30)

    assert [answer["id"] for answer in answers] == [1, 2]
    assert "pumps work" in str(answers[1]["result"])
    assert (rest, program.returncode) == ("", 0)
    # It did have something to say elsewhere.
    assert "DEBUG" in log
