"""From what the SDKs raise to the ProviderError family: the only place that knows both.

The two official SDKs name their errors alike, so one translation serves both. No text leaves here that
holds a key, however the server or a library came to quote it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import ModuleType

import httpx2

from dialogs.providers.base import (
    AuthenticationRefused,
    BadAnswer,
    ContextOverflow,
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
from dialogs.providers.overflow import classify
from dialogs.providers.wire import as_mapping

LONGEST = 1_000
KEYLIKE = re.compile(r"\b(?:sk|gsk|xai|rk|pk)[-_][\w*.\-]{6,}|\bAIza[\w\-*]{10,}|(?<=[Bb]earer )[\w*.\-]{8,}")
HIDDEN = "[key]"
NUMBER = re.compile(r"\d{1,9}(\.\d+)?")

# What an error inside a stream calls itself, as the status it would have had before the first byte.
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
# Paying, not waiting, helps here, although it comes as a 429.
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
    """Whatever the SDK raises inside becomes a ProviderError. What is our own mistake stays as it is."""
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


def from_answer(
    status: int | None, body: object, *, headers: Mapping[str, str] | None = None, now: datetime | None = None
) -> ProviderError:
    """What an error body means. A status of None or 200 is an error inside a stream that began well."""
    words = said(body, status)
    overflow = classify(status, body)
    if overflow:
        return ContextOverflow(
            words,
            context_window=overflow.context_window,
            prompt_tokens=overflow.prompt_tokens,
            is_of_bytes=overflow.is_of_bytes,
            status=status,
        )
    known = status if status not in {None, 200} else _stated_status(body)
    if _names(body) & OUT_OF_CREDIT:
        return RequestRefused(words, status=known)
    if WITHOUT_TOOLS.search(words):
        return ToolsRefused(words, status=known)
    if OF_SHAPE.search(words):
        return MessagesRefused(words, status=known)
    wait = retry_after(headers or {}, now=now or datetime.now(UTC))
    return _error_class(known)(words, status=known, retry_after=wait)


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


def said(body: object, status: int | None) -> str:
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
    # The SDKs wrap what the HTTP library raised, sometimes.
    cause = error if isinstance(error, httpx2.TransportError) else error.__cause__ or error
    if isinstance(cause, httpx2.ConnectTimeout):
        return ProviderUnreachable(f"{settings.base_url}: no connection within {settings.connect_timeout:g} s.")
    if isinstance(cause, httpx2.TimeoutException):
        return ProviderUnreachable(f"{settings.base_url}: silent for {settings.read_timeout:g} s.")
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
