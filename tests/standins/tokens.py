"""How the stand-ins count tokens, and how the servers that they stand in for drop what does not fit.

Counting is done by a real server where one is in front, else by a rule simple enough to foresee in a test: words and
signs, and four for each message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import httpx

Messages = Sequence[Mapping[str, Any]]
Counter = Callable[[Messages], Awaitable[int]]
PER_MESSAGE = 4


def count(messages: Messages, tools: Sequence[object] = ()) -> int:
    """What a message says, asks to be called, and what tools are offered."""
    texts = [_text(message) for message in messages] + [json.dumps(tool) for tool in tools]
    return sum(len(re.findall(r"\w+|[^\w\s]", text)) for text in texts) + PER_MESSAGE * len(messages)


async def count_at(front: str, messages: Messages, tools: Sequence[object] = ()) -> int:
    """What a llama.cpp server counts: its template filled in, then its tokenizer."""
    body = {"messages": list(messages)} | ({"tools": list(tools)} if tools else {})
    async with httpx.AsyncClient(base_url=front, timeout=60) as client:
        filled = (await client.post("/apply-template", json=body)).raise_for_status().json()
        asked = {"content": filled["prompt"], "add_special": True, "parse_special": True}
        found = (await client.post("/tokenize", json=asked)).raise_for_status().json()
    return len(found["tokens"])


async def without_middle(messages: Messages, fits: Callable[[Messages], Awaitable[bool]]) -> Messages | None:
    """LM Studio's default: the system prompt and the first user message stay, then what is oldest goes."""
    first = next((at for at, message in enumerate(messages) if message["role"] == "user"), 0)
    head, rest = [*messages[: first + 1]], [*messages[first + 1 :]]
    while rest:
        if await fits([*head, *rest]):
            return [*head, *rest]
        rest.pop(0)
    return head if await fits(head) else None


async def without_oldest(messages: Messages, fits: Callable[[Messages], Awaitable[bool]]) -> Messages | None:
    """Ollama's default: system messages and the last message stay, the oldest of the others go."""
    kept = [*messages]
    while not await fits(kept):
        oldest = next((at for at, message in enumerate(kept[:-1]) if message["role"] != "system"), None)
        if oldest is None:
            return None
        del kept[oldest]
    return kept


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    calls = json.dumps(message["tool_calls"]) if message.get("tool_calls") else ""
    return f"{content if isinstance(content, str) else json.dumps(content)} {calls}"
