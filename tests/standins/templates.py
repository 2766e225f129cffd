"""What published chat templates refuse, in their own words: the templates themselves, applied as servers apply them.

They stand in `chat_templates/`, with where each is from. `TEMPLATES[name](messages, tools)` returns the refusal, or an
empty text. Mistral's service is no template; what it says is written down here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from jinja2 import Template, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

Message = Mapping[str, Any]
Refuses = Callable[..., str]
FOLDER = Path(__file__).parent / "chat_templates"


def refusal_of(name: str, messages: Sequence[Message], tools: Sequence[Any] = ()) -> str:
    """Empty where the template takes these messages. What it cannot handle without saying so is a refusal too."""
    try:
        rendered(name, messages, tools)
    except (TemplateError, TypeError, ValueError) as error:
        return str(error)
    return ""


def rendered(name: str, messages: Sequence[Message], tools: Sequence[Any] = ()) -> str:
    """The prompt. By then vLLM and llama.cpp have made one text of texts and of null, and objects of arguments."""
    return _template(name).render(
        messages=[_as_handed_on(one) for one in messages],
        tools=list(tools) or None,
        bos_token="<s>",
        eos_token="</s>",
        add_generation_prompt=True,
    )


def mistral_service(messages: Sequence[Message], tools: Sequence[Any] = ()) -> str:
    for before, one in pairwise(messages):
        if (before["role"], one["role"]) == ("tool", "user"):
            return "Unexpected role 'user' after role 'tool'"
    return ""


def _by(name: str) -> Refuses:
    return lambda messages, tools=(): refusal_of(name, messages, tools)


@cache
def _template(name: str) -> Template:
    """Compiled as Hugging Face's library does it."""
    world = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"], autoescape=False
    )
    world.filters["tojson"] = lambda value, **how: json.dumps(value, ensure_ascii=False, **how)
    world.globals |= {"raise_exception": _raise, "strftime_now": lambda _form: "2026-01-15"}
    return world.from_string((FOLDER / f"{name}.jinja").read_text())


def _raise(why: str) -> None:
    raise TemplateError(why)


def _as_handed_on(message: Message) -> dict[str, Any]:
    calls = [{**call, "function": _with_object(call["function"])} for call in message.get("tool_calls") or ()]
    return {**message, "content": _one_text(message.get("content") or "")} | ({"tool_calls": calls} if calls else {})


def _one_text(content: str | list[Mapping[str, Any]]) -> str | list[Mapping[str, Any]]:
    is_whole = isinstance(content, str) or any(part["type"] != "text" for part in content)
    return content if is_whole else "\n".join(part["text"] for part in content)


def _with_object(function: Mapping[str, Any]) -> dict[str, Any]:
    return {**function, "arguments": json.loads(function["arguments"] or "{}")}


TEMPLATES: dict[str, Refuses] = {
    "mistral nemo": _by("mistral-nemo-2407"),
    "mistral small": _by("mistral-small-3.2"),
    "ministral": _by("ministral-3"),
    "mistral's service": mistral_service,
    "gemma 2": _by("gemma-2"),
    "gemma 3": _by("gemma-3"),
    "qwen 2.5": _by("qwen-2.5"),
    "qwen": _by("qwen-3.5"),
}
# These have a place for calls and results.
WITH_TOOLS = ("mistral nemo", "mistral small", "ministral", "mistral's service", "qwen 2.5", "qwen")
