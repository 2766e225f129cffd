"""What published chat templates refuse, in their own words: a server that applies one answers with these.

Written from the templates of Mistral 7B Instruct 0.3, Gemma 2 and 3 and Qwen 3.5, and from what Mistral's service says.
Each takes the messages as they came and returns the refusal, or an empty text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

Message = Mapping[str, Any]
Template = Callable[[Sequence[Message]], str]
ALTERNATE = "onversation roles must alternate user/assistant/user/assistant/..."


def mistral(messages: Sequence[Message]) -> str:
    """Turns without calls and results alternate; ids of calls have nine letters; one system message at the
    beginning."""
    talk = messages[1:] if messages and messages[0]["role"] == "system" else messages
    turns = [one["role"] for one in talk if one["role"] != "tool" and not one.get("tool_calls")]
    if [role == "user" for role in turns] != [at % 2 == 0 for at in range(len(turns))]:
        return f"After the optional system message, c{ALTERNATE}"
    if any(role not in ("user", "assistant") for role in turns):
        return "Only user and assistant roles are supported, with the exception of an initial optional system message!"
    ids = [call["id"] for one in talk for call in one.get("tool_calls") or ()]
    ids += [one["tool_call_id"] for one in talk if one["role"] == "tool"]
    if any(not re.fullmatch(r"[A-Za-z0-9]{9}", one) for one in ids):
        return "Tool call IDs should be alphanumeric strings with length 9!"
    return ""


def mistral_service(messages: Sequence[Message]) -> str:
    for before, one in pairwise(messages):
        if (before["role"], one["role"]) == ("tool", "user"):
            return "Unexpected role 'user' after role 'tool'"
    return ""


def gemma3(messages: Sequence[Message]) -> str:
    """Every message alternates, results too; what the system says begins the first message."""
    talk = messages[1:] if messages and messages[0]["role"] == "system" else messages
    if any((one["role"] == "user") != (at % 2 == 0) for at, one in enumerate(talk)):
        return f"C{ALTERNATE}"
    return ""


def gemma2(messages: Sequence[Message]) -> str:
    return "System role not supported" if messages and messages[0]["role"] == "system" else gemma3(messages)


def qwen(messages: Sequence[Message]) -> str:
    if any(one["role"] == "system" for one in messages[1:]):
        return "System message must be at the beginning."
    return "" if any(one["role"] == "user" for one in messages) else "No user query found in messages."


TEMPLATES: dict[str, Template] = {
    "mistral": mistral,
    "mistral's service": mistral_service,
    "gemma 2": gemma2,
    "gemma 3": gemma3,
    "qwen": qwen,
}
# These have a place for calls and results.
WITH_TOOLS = ("mistral", "mistral's service", "qwen")
