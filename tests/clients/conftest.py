"""One real Dominds for all clients: a scripted model behind it, an agent with a limit, and Alice's key."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.clients.client import Client
from tests.clients.node_clients import NodeClient
from tests.clients.python_clients import LangChainClient, OpenAIClient
from tests.stack import Stack, running_stack

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


@dataclass(frozen=True)
class Served:
    """A running Dominds with a script behind it."""

    stack: Stack
    key: str

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
        """Its value, with all models at hand."""
        return self.stack.shell(f"print({expression})")


@pytest.fixture(scope="package")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with running_stack(tmp_path_factory.mktemp("clients"), "--no-demo") as stack:
        stack.shell(ROWS)
        key = stack.run_manage("apikey", "create", "laptop", "--user", "alice", "--quiet").stdout.strip()
        yield Served(stack, key)


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
