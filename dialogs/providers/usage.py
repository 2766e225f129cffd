"""From a provider's token counts to `Usage`, or to the reason why there is none; and reading a server's JSON, which may
have any shape. Pure.

A missing or malformed count is never read as zero: the whole usage is then unavailable. Each dialect is a row of a
table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from dialogs.providers.base import ModelFacts
from health.monitor.levels import Usage, UsageUnavailable

# Above this a count does not fit a database's integer; no model takes so many tokens.
TOO_MANY = 2**31


class Dialect(StrEnum):
    """Which API's field names are spoken."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    OLLAMA = "ollama"
    LLAMACPP_TIMINGS = "llamacpp timings"


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Where a dialect keeps its counts. The first field of a sum must be there; the rest may be absent or null.

    `cached` is a part of the prompt, already inside its sum: it is shown, never added.
    """

    prompt: tuple[str, ...]
    completion: tuple[str, ...]
    also_required: frozenset[str] = frozenset()
    cached: tuple[str, ...] = ()
    total: str = ""


SHAPES: dict[Dialect, Shape] = {
    Dialect.OPENAI: Shape(
        prompt=("prompt_tokens",),
        completion=("completion_tokens",),
        cached=("prompt_tokens_details", "cached_tokens"),
        total="total_tokens",
    ),
    # `input_tokens` is only what was not cached; the cache fields are null for whoever does not use the cache.
    Dialect.ANTHROPIC: Shape(
        prompt=("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
        completion=("output_tokens",),
        cached=("cache_read_input_tokens",),
    ),
    Dialect.OLLAMA: Shape(prompt=("prompt_eval_count",), completion=("eval_count",)),
    # `prompt_n` alone is only what was not cached, so both must be there.
    Dialect.LLAMACPP_TIMINGS: Shape(
        prompt=("cache_n", "prompt_n"),
        completion=("predicted_n",),
        also_required=frozenset({"prompt_n"}),
        cached=("cache_n",),
    ),
}


class _Unusable(Exception):
    """Raised with the reason why usage cannot be read."""


def normalise(
    raw: Mapping[str, Any] | None,
    *,
    timings: Mapping[str, Any] | None = None,
    dialect: Dialect = Dialect.OPENAI,
) -> Usage | UsageUnavailable:
    """The usage of one generation; from llama.cpp's `timings` where its usage cannot be used."""
    usage = _read(raw, SHAPES[dialect])
    if timings is None:
        return usage
    timed = _read(timings, SHAPES[Dialect.LLAMACPP_TIMINGS])
    if isinstance(usage, UsageUnavailable):
        return timed if isinstance(timed, Usage) else usage
    if usage.cached_tokens is None and isinstance(timed, Usage):
        return replace(usage, cached_tokens=timed.cached_tokens)
    return usage


def later(before: Usage | UsageUnavailable, after: Usage | UsageUnavailable) -> Usage | UsageUnavailable:
    """The later complete one of two reports about one generation: reports are absolute, so they are never added."""
    return before if isinstance(before, Usage) and isinstance(after, UsageUnavailable) else after


def _read(raw: object, shape: Shape) -> Usage | UsageUnavailable:
    try:
        return _usage(_mapping(raw), shape)
    except _Unusable as reason:
        return UsageUnavailable(str(reason))


def _mapping(raw: object) -> Mapping[str, Any]:
    if raw is None:
        raise _Unusable("the provider reported no usage")
    if not isinstance(raw, Mapping):
        raise _Unusable(f"usage is no object but {type(raw).__name__}")
    return raw


def _usage(raw: Mapping[str, Any], shape: Shape) -> Usage:
    prompt = _sum(raw, shape.prompt, shape.also_required)
    completion = _sum(raw, shape.completion, shape.also_required)
    if prompt == 0:
        # A request is never empty: servers that do not count send zeros.
        raise _Unusable(f"{shape.prompt[0]} is 0")
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=prompt + completion if raw.get(shape.total) is None else _count(raw, shape.total),
        cached_tokens=_cached(raw, shape, prompt),
    )


def _sum(raw: Mapping[str, Any], fields: tuple[str, ...], also_required: frozenset[str]) -> int:
    first, *rest = fields
    parts = [name for name in rest if name in also_required or raw.get(name) is not None]
    total = sum(_count(raw, name) for name in (first, *parts))
    if total >= TOO_MANY:
        raise _Unusable(f"{first} is too large")
    return total


def _count(raw: Mapping[str, Any], name: str) -> int:
    value = raw.get(name)
    if value is None:
        raise _Unusable(f"{name} is missing")
    count = whole(value)
    if count is None:
        raise _Unusable(f"{name} is no token count: {str(value)[:40]!r}")
    return count


def whole(value: object) -> int | None:
    """A number of tokens as JSON may write it (12 or 12.0); None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # NaN and infinity are no whole numbers either.
    if isinstance(value, float) and not value.is_integer():
        return None
    return int(value) if 0 <= value < TOO_MANY else None


def _cached(raw: Mapping[str, Any], shape: Shape, prompt: int) -> int | None:
    """The cached tokens; None where the number cannot be right: the rest of the usage still counts."""
    value: object = raw
    for name in shape.cached:
        value = value.get(name) if isinstance(value, Mapping) else None
    count = None if isinstance(value, Mapping) else whole(value)
    return count if count is not None and count <= prompt else None


# Reading JSON that a server sent, which may be anything: a wrong shape reads as empty, never as an error. Also what a
# models list says of one model: servers that copied OpenAI's list each added a field of their own.
NOTHING: Mapping[str, Any] = {}
DEEPEST = 6
LONGEST_TEXT = 2_000
MOST_ITEMS = 100
# The first field that is present counts: the allocated window comes before the model's maximum.
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
