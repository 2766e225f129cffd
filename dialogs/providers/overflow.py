"""Is this error a prompt too long for the model, and what does it say of the window? Pure.

Servers agree on nothing here but prose, so the wordings are tables. A rate limit (429) is never an overflow.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dialogs.providers.usage import whole

# None and 200 are errors inside a stream that began well.
STATUSES = frozenset({None, 200, 400, 413, 422})
RATE_LIMITS = frozenset({"429", "rate_limit_error", "rate_limit_exceeded"})
# No chat model is served with less; one vLLM version printed the room left, 3, as the maximum.
LEAST_WINDOW = 128
# Enough for every message of a server, too little to search what a client may have pasted.
LONGEST_TEXT = 4_000
DEEPEST = 5
# Where servers put their words. Others may echo the request, and a person may well write about overflows.
SPEAKING = ("error", "message", "type", "code", "detail", "msg", "metadata", "raw", "error_msg")

_N = r"(?P<n>\d[\d,_]*)"


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE | re.DOTALL)


OVERFLOW = _any(
    r"context_length_exceeded",  # OpenAI and most who copy it
    r"exceed_context_size_error",  # llama.cpp
    r"exceeds the available context size",  # llama.cpp
    r"maximum context length",  # OpenAI, vLLM, DeepSeek, Mistral, OpenRouter
    r"maximum prompt length is",  # xAI
    r"context the overflows",  # LM Studio
    r"tokens to keep from the initial prompt",  # LM Studio
    r"\bn_keep\b",  # LM Studio
    r"reached context length of",  # LM Studio, while generating
    r"longer than the context length",  # Ollama
    r"prompt is too long",  # Anthropic
    r"exceeds? context limit",  # Anthropic, with max_tokens
    r"input length.{0,200}context|context.{0,200}input length",  # vLLM
    r"range of input length should be",  # Qwen
    r"context window.{0,80}exceed|exceed.{0,80}context window",
    r"input token count.{0,80}exceeds the maximum",  # Gemini
    r"exceeded model token limit",  # Moonshot
    r"prompt exceeds max length",  # Zhipu
    r"request_too_large",  # Anthropic, by bytes
)
OF_BYTES = "request_too_large"
WINDOW = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"available context size \({_N}",
        rf"n_ctx:? ?\(?{_N}",
        rf"context length (?:is|of)(?: only)? {_N}",
        rf"with {_N} maximum context length",
        rf"maximum prompt length is {_N}",
        rf"tokens > {_N} maximum",
        rf"exceeds? context limit: [\d,]+ \+ [\d,]+ > {_N}",
        rf"exceeds the maximum number of tokens allowed \(?{_N}",
        rf"exceeded model token limit: {_N}",
        rf"input length should be \[1, {_N}\]",
        rf"context window (?:is|of) {_N}",
    )
)
PROMPT = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"request \({_N} tokens\)",
        rf"prompt is too long: {_N} tokens",
        rf"\({_N} (?:in the messages|of text input)",
        rf"messages resulted in {_N} tokens",
        rf"(?:request has|you passed) {_N} input tokens",
        rf"prompt contains {_N} (?:input )?tokens",
        rf"request contains {_N} tokens",
        rf"input token count \({_N}\)",
        rf"exceeds? context limit: {_N} \+",
    )
)


@dataclass(frozen=True, kw_only=True)
class Overflow:
    """The prompt did not fit. Numbers are None where the server gives none that can be true."""

    context_window: int | None = None
    prompt_tokens: int | None = None
    # The body was too long, in bytes.
    is_of_bytes: bool = False


def classify(status: int | None, body: object) -> Overflow | None:
    """None when this error is something else. `body` is parsed JSON or text, with or without its `error` wrapper."""
    if status not in STATUSES:
        return None
    words = list(_words(_parsed(body), DEEPEST))
    if RATE_LIMITS.intersection(words) or not OVERFLOW.search(text := "\n".join(words)):
        return None
    window = _field(_parsed(body), "n_ctx") or _first(WINDOW, text)
    prompt = _field(_parsed(body), "n_prompt_tokens") or _first(PROMPT, text)
    return Overflow(
        context_window=window if window and window >= LEAST_WINDOW else None,
        prompt_tokens=prompt or None,
        is_of_bytes=OF_BYTES in text,
    )


def _parsed(body: object) -> object:
    """A proxy may pass the upstream's JSON on as text."""
    if isinstance(body, bytes):
        body = body.decode(errors="replace")
    if isinstance(body, str) and body.lstrip().startswith("{"):
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            return body
    return body


def _words(body: object, depth: int) -> Iterator[str]:
    if isinstance(body, Mapping) and depth:
        for name in SPEAKING:
            yield from _words(_parsed(body.get(name)), depth - 1)
    elif isinstance(body, list) and depth:
        for item in body[:20]:
            yield from _words(item, depth - 1)
    elif isinstance(body, str | int):
        yield str(body)[:LONGEST_TEXT]


def _field(body: object, name: str) -> int | None:
    """llama.cpp gives exact numbers beside the message."""
    if not isinstance(body, Mapping):
        return None
    inner: Any = body.get("error")
    return whole(body.get(name)) or (_field(inner, name) if isinstance(inner, Mapping) else None)


def _first(patterns: tuple[re.Pattern[str], ...], text: str) -> int | None:
    found = next(filter(None, (pattern.search(text) for pattern in patterns)), None)
    return whole(int(found["n"].replace(",", "").replace("_", ""))) if found else None
