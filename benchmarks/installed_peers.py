"""Rivals that are packages of others, where installed (`pip install -r requirements/bench.txt`), driven as documented.

No model is called: of each, what it does without one. OpenHands' SDK wants Python 3.12, and its condensers that
need no model keep the first and the last events: that is "cut middle" of `benchmarks.peers`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from benchmarks.devsets.case import Message, text_of
from benchmarks.scoring import tokens, tokens_of_text


def installed() -> dict[str, Any]:
    found: dict[str, Any] = {}
    if find_spec("langchain_core"):
        found |= {"LangChain": _langchain(), "LangChain start_on": _langchain(start_on="human")}
    if find_spec("pydantic_ai_harness"):
        found["pydantic-ai-harness"] = harness
    return found


def _langchain(**options: str) -> Any:
    """`trim_messages`, last messages first, the system message kept."""
    from langchain_core.messages import convert_to_messages, convert_to_openai_messages, trim_messages

    def size(messages: Sequence[Any]) -> int:
        return tokens(convert_to_openai_messages(messages))

    def compact(messages: Sequence[Message], limit: int, task: str) -> list[Message]:
        readable = convert_to_messages([message | {"content": message.get("content") or ""} for message in messages])
        kept = trim_messages(
            readable, max_tokens=limit, token_counter=size, strategy="last", include_system=True, **options
        )
        return convert_to_openai_messages(kept)

    return compact


def harness(messages: Sequence[Message], limit: int, task: str) -> list[Message]:
    """Its steps without a model: clear old tool results, then drop the oldest messages until the rest fits."""
    from pydantic_ai.models.test import TestModel
    from pydantic_ai_harness.compaction import ClearToolResults, SlidingWindowCompaction, compact_now

    def compacted(strategy: Any, history: list[Any]) -> list[Any]:
        return asyncio.run(compact_now(strategy, history, model=TestModel()))

    history = compacted(ClearToolResults(max_tokens=1, keep_pairs=3, tokenizer=tokens_of_text), _to_harness(messages))
    keep = limit
    while tokens(result := _from_harness(history)) > limit and keep > limit // 20:
        keep -= limit // 20
        window = SlidingWindowCompaction(max_tokens=1, keep_tokens=keep, tokenizer=tokens_of_text)
        history = compacted(window, history)
    return result


def _to_harness(messages: Sequence[Message]) -> list[Any]:
    from pydantic_ai import messages as parts

    names, history = dict[str, str](), list[Any]()
    for message in messages:
        text = text_of(message | {"tool_calls": None})
        if message["role"] == "assistant":
            calls = message.get("tool_calls") or ()
            names |= {call["id"]: call["function"]["name"] for call in calls}
            made = [
                parts.ToolCallPart(call["function"]["name"], call["function"]["arguments"], call["id"])
                for call in calls
            ]
            history.append(parts.ModelResponse([*([parts.TextPart(text)] * bool(text)), *made]))
        elif message["role"] == "tool":
            call_id = message["tool_call_id"]
            history.append(parts.ModelRequest([parts.ToolReturnPart(names.get(call_id, "tool"), text, call_id)]))
        else:
            part = parts.SystemPromptPart if message["role"] == "system" else parts.UserPromptPart
            history.append(parts.ModelRequest([part(text)]))
    return history


def _from_harness(history: Sequence[Any]) -> list[Message]:
    result: list[Message] = []
    for message in history:
        if message.kind == "response":
            result.append(_response(message))
            continue
        for part in message.parts:
            if part.part_kind == "tool-return":
                result.append({"role": "tool", "tool_call_id": part.tool_call_id, "content": str(part.content)})
            else:
                role = "system" if part.part_kind == "system-prompt" else "user"
                result.append({"role": role, "content": str(part.content)})
    return result


def _response(message: Any) -> Message:
    text = "".join(part.content for part in message.parts if part.part_kind == "text")
    calls = [
        {
            "id": part.tool_call_id,
            "type": "function",
            "function": {"name": part.tool_name, "arguments": _json(part.args)},
        }
        for part in message.parts
        if part.part_kind == "tool-call"
    ]
    return {"role": "assistant", "content": text or None} | ({"tool_calls": calls} if calls else {})


def _json(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)
