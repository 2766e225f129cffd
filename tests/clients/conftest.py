"""One real Dominds for all clients: a scripted model behind it, an agent with a limit, and Alice's key."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.clients.client import Client
from tests.clients.node_clients import NodeClient
from tests.clients.python_clients import LangChainClient, OpenAIClient
from tests.stack import ROOT, Stack, running_stack

MODEL, GUARDED, SMALL = "scripted/tiny", "helper", "scripted/small"
ROWS = """
from django.contrib.auth.models import User
from dialogs.models import LLM, Agent, Provider
User.objects.create_user("alice")
provider = Provider.objects.create(name="scripted", kind="scripted", base_url="script.json")
llm = LLM.objects.create(provider=provider, model_id="tiny", context_length=100_000, context_length_source="admin")
LLM.objects.create(
    provider=provider, model_id="small", context_length=4_000, context_length_source="admin", prefill="refused"
)
Agent.objects.create(name="Helper", slug="helper", llm=llm, context_budget=True, context_limit=3500)
"""
# A shell takes seconds to start, so one answers all questions: a line is an expression, its value a line.
ANSWER_LINES = """
import sys
from dialogs.models import Dialog, Generation
for line in sys.stdin:
    print(eval(line), flush=True)
"""


@dataclass(frozen=True)
class Served:
    """A running Dominds with a script behind it."""

    stack: Stack
    key: str
    facts: subprocess.Popen[str]

    @property
    def url(self) -> str:
        return f"{self.stack.url}/v1"

    def play(self, *steps: dict[str, Any]) -> Callable[[], list[dict[str, Any]]]:
        """Give the model another script, from its beginning; returns a function that reads what it was sent."""
        script = self.stack.data_dir / "script.json"
        log = script.with_name("script.json.requests.jsonl")
        log.unlink(missing_ok=True)
        script.write_text(json.dumps({"steps": steps}))
        return lambda: [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def fact(self, expression: str) -> str:
        """Its value in the process that has the database."""
        assert self.facts.stdin
        assert self.facts.stdout
        self.facts.stdin.write(f"{expression}\n")
        self.facts.stdin.flush()
        return self.facts.stdout.readline().strip()


@pytest.fixture(scope="package")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with running_stack(tmp_path_factory.mktemp("clients"), "--no-demo") as stack:
        stack.shell(ROWS)
        key = stack.run_manage("apikey", "create", "laptop", "--user", "alice", "--quiet").stdout.strip()
        shell = [sys.executable, "manage.py", "shell", "--verbosity", "0", "--command", ANSWER_LINES]
        with subprocess.Popen(
            shell, cwd=ROOT, env={**stack.environment}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as facts:
            yield Served(stack, key, facts)


CLIENTS: dict[str, Callable[[Served], Client]] = {
    "openai": lambda served: OpenAIClient(served.url, served.key),
    "langchain": lambda served: LangChainClient(served.url, served.key),
    "openai-node": lambda served: NodeClient("openai.mjs", served.url, served.key),
    "ai-sdk": lambda served: NodeClient("ai_sdk.mjs", served.url, served.key),
}


@pytest.fixture(params=CLIENTS)
def client(served: Served, request: pytest.FixtureRequest) -> Client:
    return CLIENTS[request.param](served)


@pytest.fixture
def openai_client(served: Served) -> OpenAIClient:
    return OpenAIClient(served.url, served.key)
