"""The prompts that servers make of a request: each family's published chat template.

Written from the templates that the models are published with, and OpenAI's from its documentation. A prompt is a
list of pieces: text, which the vocabulary counts, and CONTROL, one token each.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from health.compaction.terms.wire import text_of
from health.tokens.families import ToolsAs
from health.tokens.messages import as_sent

CONTROL = None
Piece = str | None
Messages = Sequence[Mapping[str, Any]]
Template = Callable[[Messages, Messages], Iterator[Piece]]

_LLAMA_ASKS_FOR_CALLS = (
    "Given the following functions, please respond with a JSON for a function call with its proper arguments that best "
    'answers the given prompt.\n\nRespond in the format {"name": function name, "parameters": dictionary of argument '
    "name and its value}.Do not use variables.\n\n"
)
_HARMONY_SYSTEM = (
    "You are ChatGPT, a large language model trained by OpenAI.\nKnowledge cutoff: 2024-06\n"
    "Current date: 2026-01-15\n\nReasoning: medium\n\n"
    "# Valid channels: analysis, commentary, final. Channel must be included for every message."
)
_HARMONY_TOOLS = "\nCalls to these tools must go to the commentary channel: 'functions'."


def _calls(message: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Id, name and arguments of each call."""
    asked = message.get("tool_calls") or ()
    return [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in asked]


def llama3(messages: Messages, tools: Messages) -> Iterator[Piece]:
    """Llama 3.1 to 3.3. There is a system message always, and the tools stand in the first user message."""
    system, rest = _system(messages)
    yield CONTROL
    yield from _llama3("system", ("Environment: ipython\n" if tools else "") + "Cutting Knowledge Date: December 2023\n"
                       "Today Date: 26 Jul 2024\n\n" + system)  # fmt: skip
    listed = [json.dumps(tool, ensure_ascii=False, indent=4) + "\n\n" for tool in tools]
    asking = _LLAMA_ASKS_FOR_CALLS + "".join(listed) if tools else ""
    for message in rest:
        if message["role"] == "user":
            yield from _llama3("user", asking + text_of(message).strip())
            asking = ""
        elif calls := _calls(message):
            for _, name, arguments in calls:
                yield from _llama3("assistant", f'{{"name": "{name}", "parameters": {arguments}}}')
        elif message["role"] == "tool":
            yield from _llama3("ipython", json.dumps(text_of(message), ensure_ascii=False))
        else:
            yield from _llama3(message["role"], text_of(message).strip())
    yield from (CONTROL, "assistant", CONTROL, "\n\n")


def _llama3(role: str, text: str) -> Iterator[Piece]:
    yield from (CONTROL, role, CONTROL, f"\n\n{text}", CONTROL)


def llama2(messages: Messages, tools: Messages) -> Iterator[Piece]:
    """Llama 2, which knows no tools. Its brackets are ordinary text."""
    system, rest = _system(messages)
    opening = f"<<SYS>>\n{system}\n<</SYS>>\n\n" if system else ""
    for message in rest:
        if message["role"] == "user":
            yield from (CONTROL, f"[INST] {opening}{text_of(message).strip()} [/INST]")
            opening = ""
        else:
            yield from (f" {text_of(message).strip()} ", CONTROL)


def mistral_v1(messages: Messages, tools: Messages) -> Iterator[Piece]:
    """Mistral 7B before v0.3: as Llama 2, with the system message in front of the first request."""
    system, rest = _system(messages)
    opening = f"{system}\n\n" if system else ""
    yield CONTROL
    for message in rest:
        if message["role"] == "user":
            yield f"[INST] {opening}{text_of(message)} [/INST]"
            opening = ""
        else:
            yield from (f" {text_of(message)}", CONTROL)


def mistral_v3(messages: Messages, tools: Messages) -> Iterator[Piece]:
    """Mistral v3, in sentencepiece and in Tekken. Tools and system message stand before the last request."""
    system, rest = _system(messages)
    last = max((number for number, message in enumerate(rest) if message["role"] == "user"), default=-1)
    yield CONTROL
    for number, message in enumerate(rest):
        if message["role"] == "user":
            if number == last and tools:
                yield from (CONTROL, json.dumps([*tools], ensure_ascii=False), CONTROL)
            opening = f"{system}\n\n" if system and number == last else ""
            yield from (CONTROL, opening + text_of(message), CONTROL)
        elif calls := _calls(message):
            asked = [f'{{"name": "{name}", "arguments": {given}, "id": "{id_[:9]}"}}' for id_, name, given in calls]
            yield from (CONTROL, f"[{', '.join(asked)}]", CONTROL)
        elif message["role"] == "tool":
            result = {"content": _parsed(text_of(message)), "call_id": message["tool_call_id"][:9]}
            yield from (CONTROL, json.dumps(result, ensure_ascii=False), CONTROL)
        else:
            yield from (text_of(message), CONTROL)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def harmony(messages: Messages, tools: Messages) -> Iterator[Piece]:
    """gpt-oss. The tools stand in a developer message, in TypeScript."""
    system, rest = _system(messages)
    yield from _harmony("system", _HARMONY_SYSTEM + (_HARMONY_TOOLS if tools else ""))
    shown = as_sent(tools, ToolsAs.TYPESCRIPT)
    if system or shown:
        yield from _harmony("developer", f"# Instructions\n\n{system}\n\n{shown}")
    names: dict[str, str] = {}
    for message in rest:
        names |= {id_: name for id_, name, _ in _calls(message)}
        if calls := _calls(message):
            for _, name, arguments in calls:
                to = f"assistant to=functions.{name}"
                yield from (CONTROL, to, CONTROL, "commentary json", CONTROL, arguments, CONTROL)
        elif message["role"] == "tool":
            who = f"functions.{names.get(message['tool_call_id'], 'tool')} to=assistant"
            yield from (CONTROL, who, CONTROL, "commentary", CONTROL, text_of(message), CONTROL)
        elif message["role"] == "assistant":
            yield from (CONTROL, "assistant", CONTROL, "final", CONTROL, text_of(message), CONTROL)
        else:
            yield from _harmony(message["role"], text_of(message))
    yield from (CONTROL, "assistant")


def _harmony(role: str, text: str) -> Iterator[Piece]:
    yield from (CONTROL, role, CONTROL, text, CONTROL)


def openai(messages: Messages, tools: Messages) -> Iterator[Piece]:
    """OpenAI's cookbook: 3 tokens and the role around a message, 3 for the answer, and a price list for tools."""
    for message in messages:
        yield from (CONTROL, CONTROL, CONTROL, message["role"], text_of(message))
        for _, name, arguments in _calls(message):
            yield from (name, arguments)
    yield from (CONTROL, CONTROL, CONTROL)
    for tool in tools:
        yield from _priced(tool["function"])
    yield from (CONTROL for _ in range(12 if tools else 0))


def _priced(function: Mapping[str, Any]) -> Iterator[Piece]:
    """7 for a function, 3 when it has fields, 3 for each field, 3 for each choice but 3 less for having choices."""
    yield from (CONTROL for _ in range(7))
    yield f"{function['name']}:{function.get('description', '').removesuffix('.')}"
    fields = (function.get("parameters") or {}).get("properties") or {}
    yield from (CONTROL for _ in range(3 if fields else 0))
    for name, field in fields.items():
        choices = field.get("enum") or ()
        yield from (CONTROL for _ in range(3 + 3 * max(0, len(choices) - 1)))
        yield from choices
        yield f"{name}:{field.get('type', '')}:{field.get('description', '').removesuffix('.')}"


def _system(messages: Messages) -> tuple[str, Messages]:
    """The leading system message's text, and the rest."""
    if messages and messages[0]["role"] in {"system", "developer"}:
        return text_of(messages[0]).strip(), messages[1:]
    return "", messages
