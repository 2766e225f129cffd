"""A generation that failed, as an error of OpenAI's shape: what a program can act on, and words for its log."""

from __future__ import annotations

from dialogs.api.errors import ApiError, internal
from dialogs.models import Generation
from dialogs.providers.base import ProviderError

# By our code: the HTTP status, OpenAI's type, and OpenAI's code where it has one.
OVERFLOW = (400, "invalid_request_error", "context_length_exceeded")
KNOWN: dict[str, tuple[int, str, str]] = {
    "context_overflow": OVERFLOW,
    "context_filled": OVERFLOW,
    "context_compaction_failed": (400, "invalid_request_error", "context_compaction_failed"),
    # Clients compact their own history at this code, as if nobody stood between.
    "compaction_off": (400, "invalid_request_error", "context_length_exceeded"),
    "limit_unavailable": (400, "invalid_request_error", "limit_unavailable"),
    "request_refused": (400, "invalid_request_error", "request_refused"),
    "messages_refused": (400, "invalid_request_error", "messages_refused"),
    "tools_refused": (400, "invalid_request_error", "tools_refused"),
    "model_not_found": (404, "invalid_request_error", "model_not_found"),
    "switched_off": (404, "invalid_request_error", "model_not_found"),
    "rate_limited": (429, "rate_limit_error", "rate_limit_exceeded"),
    "not_configured": (503, "api_error", "not_configured"),
    "authentication_refused": (502, "api_error", "authentication_refused"),
    "provider_unreachable": (503, "api_error", "provider_unreachable"),
    "provider_failed": (502, "api_error", "provider_failed"),
    "bad_answer": (502, "api_error", "bad_answer"),
    "answer_endless": (502, "api_error", "answer_endless"),
}
MESSAGES = frozenset({"context_overflow", "context_filled", "context_compaction_failed", "compaction_off"})


def failure(generation: Generation | None, error: ProviderError | None) -> ApiError:
    """`error` is what the provider raised last, if that was it."""
    if generation is None:
        return internal()
    return _worded(generation.error_code, generation.error_message or str(error or ""), error)


def failed_with(error: ProviderError) -> ApiError:
    """Where nothing was recorded."""
    return _worded(error.code, str(error), error)


def _worded(code: str, words: str, error: ProviderError | None) -> ApiError:
    if code not in KNOWN:
        return internal()
    status, kind, theirs = KNOWN[code]
    return ApiError(
        status,
        words or "The answer could not be made.",
        type=kind,
        code=theirs,
        param="messages" if code in MESSAGES else None,
        retry_after=error.retry_after if error else None,
    )
