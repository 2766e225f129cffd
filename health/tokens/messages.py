"""Estimates the tokens of a whole request: messages in OpenAI's format, and their tools.

The sum is the same as over compaction's units (`ports.counted`) and their overhead, without making units.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from health.compaction.terms.wire import attached_to, text_of
from health.tokens.counters import count_text, counter_for
from health.tokens.families import ToolsAs, family_of
from health.tokens.images import media_tokens


def count_messages(messages: Sequence[Mapping[str, Any]], model: str, tools: Sequence[Mapping[str, Any]] = ()) -> int:
    """Estimated prompt tokens: contents, reasoning, calls, names, images, and their frames."""
    counter = counter_for(model)
    texts = [text for message in messages for text in (text_of(message), attached_to(message))]
    media = sum(media_tokens(message, model) for message in messages)
    return len(messages) * counter.per_message + sum(counter.count(texts)) + media + overhead_tokens(model, tools)


def overhead_tokens(model: str, tools: Sequence[Mapping[str, Any]] = ()) -> int:
    """Tokens besides the messages: the schemas of tools, and the beginnings of prompt and answer."""
    return family_of(model).opening + tools_tokens(model, tools)


def tools_tokens(model: str, tools: Sequence[Mapping[str, Any]]) -> int:
    family = family_of(model)
    return count_text(as_sent(tools, family.tools_as), model) + (family.calling if tools else 0)


# Llama 3.1's text before the schemas; other templates' is about as long.
_INTRODUCTION = (
    "Given the following functions, please respond with a JSON for a function call with its proper arguments that best "
    'answers the given prompt.\n\nRespond in the format {"name": function name, "parameters": dictionary of argument '
    "name and its value}. Do not use variables.\n\n"
)


def as_sent(tools: Sequence[Mapping[str, Any]], shown: ToolsAs) -> str:
    """The text of these tools (OpenAI's format) in a prompt; empty without tools."""
    if not tools:
        return ""
    if shown is ToolsAs.TYPESCRIPT:
        return "# Tools\n\n## functions\n\nnamespace functions {\n\n" + "".join(map(_typed, tools)) + "}"
    indent = 4 if shown is ToolsAs.INDENTED_JSON else None
    return _INTRODUCTION + "\n\n".join(
        json.dumps(tool, ensure_ascii=False, indent=indent, default=str) for tool in tools
    )


def _typed(tool: Mapping[str, Any]) -> str:
    function = _mapping(tool.get("function")) or tool
    lines = list(_comment(function))
    parameters = _mapping(function.get("parameters"))
    body = "_: {\n" + "\n".join(_fields(parameters)) + "\n}" if parameters.get("properties") else ""
    return "\n".join([*lines, f"type {function.get('name')} = ({body}) => any;\n\n"])


def _fields(schema: Mapping[str, Any]) -> Iterator[str]:
    required = schema.get("required") or ()
    for name, field in _mapping(schema.get("properties")).items():
        yield from _comment(_mapping(field))
        yield f"{name}{'' if name in required else '?'}: {_type(_mapping(field))},"


def _comment(described: Mapping[str, Any]) -> Iterable[str]:
    return (f"// {line}" for line in str(described.get("description") or "").splitlines())


def _type(schema: Mapping[str, Any]) -> str:
    if choices := schema.get("enum"):
        return " | ".join(json.dumps(choice, ensure_ascii=False, default=str) for choice in choices)
    if schema.get("properties"):
        return "{\n" + "\n".join(_fields(schema)) + "\n}"
    if schema.get("type") == "array":
        return f"{_type(_mapping(schema.get('items')))}[]"
    kinds = schema.get("type") or "any"
    return " | ".join(map(str, kinds)) if isinstance(kinds, list) else str(kinds)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
