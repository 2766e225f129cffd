"""Reading JSON that a server sent, which may be anything: a wrong shape reads as empty, never as an error. Also what a
models list says of one model: servers that copied OpenAI's list each added a field of their own. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dialogs.providers.base import ModelFacts
from dialogs.providers.usage import whole

NOTHING: Mapping[str, Any] = {}
DEEPEST = 6
LONGEST_TEXT = 2_000
MOST_ITEMS = 100
# First come, first taken: what is allocated or in force stands before what a model could do at most.
WINDOW_FIELDS = ("context_length", "max_model_len", "context_window", "max_context_length", "max_input_tokens")
OUTPUT_FIELDS = ("max_completion_tokens", "max_output_tokens", "max_tokens")


def as_mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else NOTHING


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def as_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def recordable(value: object, depth: int = DEEPEST) -> Any:
    """The value as every database stores JSON: no NaN, no NUL, no lone surrogates, nothing endless."""
    if isinstance(value, Mapping):
        items = list(value.items())[:MOST_ITEMS] if depth else []
        return {_clean(str(name)): recordable(item, depth - 1) for name, item in items}
    if isinstance(value, list | tuple):
        return [recordable(item, depth - 1) for item in value[:MOST_ITEMS]] if depth else []
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    return _clean(str(value))


def _clean(text: str) -> str:
    return text[:LONGEST_TEXT].replace("\0", "").encode(errors="replace").decode()


def facts_of(entry: Mapping[str, Any]) -> ModelFacts:
    """One entry of `data`. 0 is "the server does not say", never a window."""
    # OpenRouter: what the model could do, and what the host that serves it first allows. The smaller one holds.
    host = as_mapping(entry.get("top_provider"))
    # llama.cpp: `n_ctx` is allocated; `n_ctx_train`, which is only trained, is no window.
    allocated = _tokens(as_mapping(entry.get("meta")).get("n_ctx"))
    windows = [window for window in (_first(entry, WINDOW_FIELDS), _tokens(host.get("context_length"))) if window]
    return ModelFacts(
        model_id=as_text(entry.get("id")),
        context_length=allocated or min(windows, default=None),
        output_length=_first(entry, OUTPUT_FIELDS) or _tokens(host.get("max_completion_tokens")),
    )


def facts_in(body: object) -> tuple[ModelFacts, ...]:
    """Every model of a list. Entries without an id are left out."""
    found = [facts_of(as_mapping(entry)) for entry in as_list(as_mapping(body).get("data"))]
    return tuple(facts for facts in found if facts.model_id)


def _first(entry: Mapping[str, Any], fields: tuple[str, ...]) -> int | None:
    return next((count for name in fields if (count := _tokens(entry.get(name)))), None)


def _tokens(value: object) -> int | None:
    return whole(value) or None
