"""A client with Alice's key, and a provider that plays a script behind the models it asks for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient
from django.test.client import AsyncClientHandler

from dialogs.api import endpoints
from dialogs.api.writes.api_keys import create_key
from dialogs.common.threads import close_threads
from dialogs.models import LLM, Agent, ApiKey
from dominds.handlers import BareHandler
from tests.dialogs.compacting_builders import RULE, calibrate, long_text
from tests.dialogs.driver.conftest import Play, calling, play, said

__all__ = ["Play", "calling", "play", "said"]

MODEL = "scripted/tiny"


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **more}


def a_tool(name: str) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}}
    return {"type": "function", "function": {"name": name, "description": "Tells.", "parameters": parameters}}


class BareClientHandler(BareHandler, AsyncClientHandler):
    pass


class Client:
    """What an OpenAI-compatible client does, through Django's own test client."""

    def __init__(self, secret: str, model: str = MODEL) -> None:
        self.model = model
        self.headers = {"authorization": f"Bearer {secret}"}
        self.http = AsyncClient()
        # As `dominds.asgi` does for `/v1`: without middleware.
        self.http.handler = BareClientHandler()

    async def ask(self, *messages: dict[str, Any], headers: dict[str, str] | None = None, **more: Any) -> Any:
        body = {"model": self.model, "messages": list(messages), **more}
        return await self.post(body, headers=headers)

    async def post(self, body: Any, *, headers: dict[str, str] | None = None) -> Any:
        data = body if isinstance(body, str | bytes) else json.dumps(body)
        return await self.http.post(
            "/v1/chat/completions", data, content_type="application/json", headers={**self.headers, **(headers or {})}
        )

    async def get(self, path: str) -> Any:
        return await self.http.get(path, headers=self.headers)

    async def stream(self, *messages: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
        """The chunks of a streamed answer; the last line is checked here."""
        lines = await self.lines(*messages, **more)
        assert lines[-1] == "[DONE]" or "error" in json.loads(lines[-1])
        return [json.loads(line) for line in lines if line != "[DONE]"]

    async def lines(self, *messages: dict[str, Any], **more: Any) -> list[str]:
        response = await self.ask(*messages, stream=True, **more)
        assert response.status_code == 200, response.content
        raw = b"".join([part async for part in response.streaming_content]).decode()
        return [event.removeprefix("data: ") for event in raw.split("\n\n") if event.startswith("data: ")]


def text_of(chunks: list[dict[str, Any]]) -> str:
    deltas = [choice["delta"] for chunk in chunks for choice in chunk.get("choices", ())]
    return "".join(delta.get("content") or "" for delta in deltas)


def statuses(chunks: list[dict[str, Any]]) -> list[tuple[str, bool]]:
    found = [chunk["event"]["data"] for chunk in chunks if "event" in chunk]
    return [(one["description"], one["done"]) for one in found]


def long_history(pairs: int = 8, sentences: int = 4) -> list[dict[str, Any]]:
    """What a client brings along; the first thing in it is a rule."""
    history: list[dict[str, Any]] = []
    for number in range(pairs):
        asked = RULE if number == 0 else f"Question {number}. {long_text(number, sentences)}"
        history += [user(asked), assistant(f"Answer {number}. {long_text(number + 500, sentences)}")]
    return history


@pytest.fixture
def guarded(agent: Agent, llm: LLM) -> Agent:
    """The agent `helper` with a limit of 3,500 tokens; the window is far above it, and estimates are right."""
    calibrate(llm)
    agent.context_budget, agent.context_limit = True, 3500
    agent.save()
    llm.context_length, llm.optimal_max_tokens, llm.compaction = 100_000, None, "automatic"
    llm.save()
    return agent


@pytest.fixture
def small_client(key: tuple[ApiKey, str], guarded: Agent, llm: LLM) -> Client:
    """One whose model has a window of 4,000 tokens; that it goes on with an answer by itself was not shown."""
    llm.context_length, llm.prefill = 4000, "refused"
    llm.save()
    return Client(key[1], model="helper")


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a second a stream begins, and a failure is told in it; a busy machine may need longer to find out."""
    monkeypatch.setattr(endpoints, "PATIENCE_SECONDS", 60.0)


MakeKey = Callable[..., tuple[ApiKey, str]]


@pytest.fixture
def make_key(alice: User) -> MakeKey:
    def make(**fields: Any) -> tuple[ApiKey, str]:
        return create_key(**({"owner": alice, "name": "laptop"} | fields))

    return make


@pytest.fixture
def key(make_key: MakeKey) -> tuple[ApiKey, str]:
    return make_key()


@pytest.fixture
def guarded_client(key: tuple[ApiKey, str], guarded: Agent) -> Client:
    """One that speaks to the agent with the limit."""
    return Client(key[1], model="helper")


@pytest.fixture
def client_of_alice(key: tuple[ApiKey, str], agent: Agent, llm: LLM) -> Client:
    return Client(key[1])


@pytest.fixture(autouse=True)
def closed_threads() -> Iterator[None]:
    """Threads that keep their connections would keep the test's database."""
    yield
    close_threads()
