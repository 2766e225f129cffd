"""Translates the SDKs' errors into ProviderErrors, and recognises refusals of too long requests.

The two official SDKs have the same names for errors, so one translation serves both. Keys are removed from all texts,
also where a server or library quotes them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import ModuleType
from typing import Any

import httpx2

from dialogs.providers.base import (
    AuthenticationRefused,
    BadAnswer,
    ContextOverflow,
    MediaRefused,
    MessagesRefused,
    ModelNotFound,
    NotConfigured,
    ProviderError,
    ProviderFailed,
    ProviderSettings,
    ProviderUnreachable,
    RateLimited,
    RequestRefused,
    ToolsRefused,
)
from dialogs.providers.laws import OF_SHAPE
from dialogs.providers.usage import as_mapping, whole

LONGEST = 1_000
KEYLIKE = re.compile(r"\b(?:sk|gsk|xai|rk|pk)[-_][\w*.\-]{6,}|\bAIza[\w\-*]{10,}|(?<=[Bb]earer )[\w*.\-]{8,}")
HIDDEN = "[key]"
NUMBER = re.compile(r"\d{1,9}(\.\d+)?")

# The `type` of an error inside a stream, and the HTTP status that the same error has before the first byte.
STATUS_OF_TYPE = {
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "invalid_request_error": 400,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "overloaded_error": 529,
    "unavailable_error": 503,
}
# "… does not support tools", "tools param requires --jinja", "… requires --enable-auto-tool-choice", "no endpoints
# found that support tool use": each server has words of its own, and a status of its own.
WITHOUT_TOOLS = re.compile(
    r"(does not|doesn't|do not|not) support (tool|function)"
    r"|(tool|function)s?( use| calls?| calling)? (is |are )?not supported"
    r"|tools param requires|enable-auto-tool-choice|that support tool use",
    re.IGNORECASE,
)
# "image input is not supported" (llama.cpp, with 500), "missing data required for image input" (Ollama), "is not a
# multimodal model" (vLLM), "no endpoints found that support image input" (OpenRouter, with 404).
WITHOUT_MEDIA = re.compile(
    r"(image|audio|vision|video|file)s?( input)?s? (is |are )?not supported"
    r"|not support (image|audio|vision|video|file)"
    r"|(support|required for) (image|audio|vision|video|file) input|not a multimodal model",
    re.IGNORECASE,
)
# Out of credit: waiting does not help, although the status is 429.
OUT_OF_CREDIT = frozenset({"insufficient_quota", "billing_error"})
ERRORS: dict[int, type[ProviderError]] = {
    401: AuthenticationRefused,
    403: AuthenticationRefused,
    404: ModelNotFound,
    408: ProviderUnreachable,
    429: RateLimited,
}


@contextmanager
def translated(sdk: ModuleType, settings: ProviderSettings) -> Iterator[None]:
    """Inside, each error of the SDK becomes a ProviderError. Errors of our own code stay as they are."""
    try:
        yield
    except ProviderError as error:
        error.args = (redacted(str(error), settings.api_key),)
        raise
    except Exception as error:
        found = translate(error, sdk=sdk, settings=settings)
        if found is None:
            raise
        found.args = (redacted(str(found), settings.api_key),)
        # Not chained: the SDK's error holds the request, and the request holds the key.
        raise found from None


def translate(error: Exception, *, sdk: ModuleType, settings: ProviderSettings) -> ProviderError | None:
    if isinstance(error.__cause__, ProviderError):
        # An error of our own, which the SDK took for a broken connection.
        return error.__cause__
    if isinstance(error, sdk.APIStatusError):
        return from_answer(error.status_code, error.body, headers=error.response.headers)
    if isinstance(error, sdk.APIConnectionError | httpx2.TransportError):
        return _unreachable(error, settings)
    if isinstance(error, sdk.APIError):
        return from_answer(None, error.body or str(error))
    # Broken JSON and broken UTF-8 are ValueErrors; JSON nested without end is read no further; a broken compression is
    # httpx2's.
    if isinstance(error, ValueError | RecursionError | httpx2.DecodingError):
        return BadAnswer(f"The provider sent something that cannot be read: {error}")
    if isinstance(error, httpx2.InvalidURL):
        return NotConfigured(f"The base URL cannot be used: {error}")
    return None


def from_answer(status: int | None, body: object, *, headers: Mapping[str, str] | None = None) -> ProviderError:
    """The ProviderError for an error body. Status None or 200: the error came inside a stream that had begun."""
    words = error_text(body, status)
    overflow = classify(status, body)
    if overflow:
        return ContextOverflow(words, **vars(overflow), status=status)
    known = status if status not in {None, 200} else _stated_status(body)
    if _names(body) & OUT_OF_CREDIT:
        return RequestRefused(words, status=known)
    if WITHOUT_TOOLS.search(words):
        return ToolsRefused(words, status=known)
    if WITHOUT_MEDIA.search(words):
        return MediaRefused(words, status=known)
    if OF_SHAPE.search(words):
        return MessagesRefused(words, status=known)
    wait = retry_after(headers or {}, now=datetime.now(UTC))
    return _error_class(known)(words, status=known, retry_after=wait)


def is_full(body: object) -> bool:
    """Does the error of an answer that had begun say that it filled the window? LM Studio's does, where other servers
    end the answer."""
    return bool(re.search("reached context length of", _message(body), re.IGNORECASE))


def retry_after(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """Seconds to wait, from milliseconds (OpenAI), seconds or an HTTP date; None when the server names no moment."""
    milliseconds, value = (headers.get(name, "").strip() for name in ("retry-after-ms", "retry-after"))
    if NUMBER.fullmatch(milliseconds):
        return float(milliseconds) / 1000
    if NUMBER.fullmatch(value):
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, IndexError, OverflowError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())


def error_text(body: object, status: int | None) -> str:
    """The provider's own words, short enough for a page."""
    if status is not None and 300 <= status < 400:
        return f"HTTP {status}: it sends us to another address, which is not followed. Is the base URL right?"
    prefix = f"HTTP {status}: " if status not in {None, 200} else ""
    text = " ".join(_message(body).split())
    if re.match(r"<(!doctype|html)", text, re.IGNORECASE):
        text = "an HTML page, which no LLM service sends. Is the base URL right?"
    return f"{prefix}{text or 'no further explanation'}"[:LONGEST]


def redacted(text: str, key: str) -> str:
    if len(key) >= 4:
        text = text.replace(key, HIDDEN)
    return KEYLIKE.sub(HIDDEN, text)


def _unreachable(error: Exception, settings: ProviderSettings) -> ProviderError:
    # Some SDK errors wrap the error of the HTTP library.
    cause = error if isinstance(error, httpx2.TransportError) else error.__cause__ or error
    if isinstance(cause, httpx2.ConnectTimeout):
        return ProviderUnreachable(f"{settings.base_url}: no connection within {settings.connect_timeout:g} s.")
    if isinstance(cause, httpx2.TimeoutException):
        return ProviderUnreachable(f"{settings.base_url}: silent for {settings.read_timeout:g} s.")
    if "WRONG_VERSION_NUMBER" in str(cause):
        return ProviderUnreachable(f"{settings.base_url}: the server does not speak https. Does it speak http?")
    return ProviderUnreachable(f"{settings.base_url}: {str(cause)[:200] or type(cause).__name__}")


def _error_class(status: int) -> type[ProviderError]:
    if status in ERRORS:
        return ERRORS[status]
    if status >= 500:
        return ProviderFailed
    return RequestRefused if status >= 400 else BadAnswer


def _error(body: object) -> object:
    """The error itself, out of the wrapper that most servers put around it."""
    return body["error"] if isinstance(body, Mapping) and body.get("error") else body


def _message(body: object) -> str:
    error = _error(body)
    if isinstance(error, Mapping):
        error = next((error[name] for name in ("message", "detail", "msg", "code", "type") if error.get(name)), "")
    return error if isinstance(error, str) else str(error or "")


def _names(body: object) -> set[str]:
    error = as_mapping(_error(body))
    return {str(error.get(name)) for name in ("type", "code")}


def _stated_status(body: object) -> int:
    """The status that an error without one claims; a failure of the provider's when it claims none."""
    for name in _names(body):
        if re.fullmatch(r"[45]\d\d", name):
            return int(name)
        if name in STATUS_OF_TYPE:
            return STATUS_OF_TYPE[name]
    return 500


# None and 200 are errors inside a stream that began well.
STATUSES = frozenset({None, 200, 400, 413, 422})
RATE_LIMITS = frozenset({"429", "rate_limit_error", "rate_limit_exceeded"})
# No chat model has a smaller window; one vLLM version printed the tokens that were left, 3, as the maximum.
LEAST_WINDOW = 128
# Enough for every error text of a server; bounds the search where a server echoes a long request.
LONGEST_TEXT = 4_000
DEEPEST = 5
# The fields of an error's text. Other fields may echo the request, in which a person may write about overflows.
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
    """The Overflow in an error body, or None. `body` is parsed JSON or text, with or without its `error` wrapper."""
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
