"""What `/v1` refuses, and generations that failed, in the shape that OpenAI's clients read.

In English whatever the language: these end up in clients' logs. A secret is never repeated in one.
"""

from __future__ import annotations

from collections.abc import Collection
from math import ceil
from typing import Any

from dialogs.common.errors import is_full
from dialogs.models import Generation
from dialogs.providers.base import MediaRefused, ProviderError

KEYS_PAGE = "/settings/keys/"
INVALID = "invalid_request_error"


class ApiError(Exception):
    """An answer that is an error. `type`, `code` and `param` are what a client's program looks at."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        type: str,  # noqa: A002 OpenAI's word
        code: str | None,
        param: str | None = None,
        retry_after: float | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.type, self.code, self.param = status, message, type, code, param
        # Whole seconds, as HTTP wants them, and never a moment too early.
        self.retry_after = None if retry_after is None else max(1, ceil(retry_after))
        self._headers = headers or {}

    @property
    def headers(self) -> dict[str, str]:
        """What the answer carries beside its body."""
        retry = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        return self._headers | retry

    def as_json(self) -> dict[str, Any]:
        return {"error": {"message": self.message, "type": self.type, "param": self.param, "code": self.code}}


def _refused_key(message: str) -> ApiError:
    return ApiError(401, message, type=INVALID, code="invalid_api_key", headers={"WWW-Authenticate": "Bearer"})


def missing_key() -> ApiError:
    return _refused_key(
        f"No API key was sent. Send a Dominds key as 'Authorization: Bearer dk-...'; create one at {KEYS_PAGE}."
    )


def unknown_key() -> ApiError:
    return _refused_key(
        "This API key is not known here. Check that it was copied whole, 46 characters from 'dk-' on; "
        f"or create another one at {KEYS_PAGE}."
    )


def revoked_key() -> ApiError:
    return _refused_key(f"This API key was revoked. Create another one at {KEYS_PAGE}.")


def expired_key() -> ApiError:
    return _refused_key(f"This API key has expired. Extend it, or create another one, at {KEYS_PAGE}.")


def disabled_owner() -> ApiError:
    return _refused_key("The account that this API key belongs to is disabled. Ask an admin of this Dominds.")


def insufficient_scope() -> ApiError:
    message = f"This API key may only read. Use a key with the scope 'chat, and read'; create one at {KEYS_PAGE}."
    return ApiError(403, message, type=INVALID, code="insufficient_scope")


def may_only_chat() -> ApiError:
    message = f"This API key may only chat. Use a key that may read; create one at {KEYS_PAGE}."
    return ApiError(403, message, type=INVALID, code="insufficient_scope")


def model_not_found(model: str) -> ApiError:
    """The same words whether it does not exist or this key may not use it: what others have is not told."""
    message = f"The model '{model}' does not exist, or this API key may not use it. GET /v1/models lists what it may."
    return ApiError(404, message, type=INVALID, code="model_not_found", param="model")


def erased() -> ApiError:
    """No failure of ours: a client that tries those again by itself would bring back what a person erased."""
    message = "Somebody erased this conversation in Dominds while it was answered. Sent again, it begins anew."
    return ApiError(404, message, type=INVALID, code="conversation_erased", param="messages")


def stopped() -> ApiError:
    """An answer that breaks off is not whole, and a client that tried it again would undo what a person did."""
    message = "Somebody stopped this answer in Dominds. What had come of it is kept there."
    return ApiError(400, message, type=INVALID, code="answer_stopped")


def only_called(tool: str) -> ApiError:
    """An empty answer would be taken for a whole one."""
    message = (
        f"The model called tools of Dominds, last {tool[:100]}, too often in a row, or in ways that cannot be made, "
        "and did not answer. What is wrong stands at each call in the dialog in Dominds. Ask in other words, choose a "
        "model that is better at tools, or use a key that does not offer them."
    )
    return ApiError(400, message, type=INVALID, code="tool_rounds_used_up")


def not_found(path: str) -> ApiError:
    message = f"There is nothing at {path}. There are /v1/chat/completions, /v1/models and /v1/tokens/count."
    return ApiError(404, message, type=INVALID, code="not_found")


def method_not_allowed(method: str, *, allowed: Collection[str]) -> ApiError:
    names = ", ".join(allowed)
    message = f"{method} is not allowed here. Use {names}."
    return ApiError(405, message, type=INVALID, code="method_not_allowed", headers={"Allow": names})


def too_large(limit_bytes: int) -> ApiError:
    message = f"The request is larger than {limit_bytes:,} bytes, the most that this Dominds reads."
    return ApiError(413, message, type=INVALID, code="request_too_large")


def invalid_request(message: str, *, param: str | None = None, code: str | None = None) -> ApiError:
    """`param` names the field, as in `messages[2].content`."""
    return ApiError(400, message, type=INVALID, code=code, param=param)


def unknown_host() -> ApiError:
    """A client in a container reaches us by a name of its own."""
    message = "Dominds does not answer under this host name. An admin adds it to DOMINDS_ALLOWED_HOSTS."
    return invalid_request(message, code="host_not_allowed")


def rate_limited(limit: int, *, retry_after: float) -> ApiError:
    message = f"This API key may make {limit} requests a minute. Try again in {max(1, ceil(retry_after))} s."
    return ApiError(429, message, type="rate_limit_error", code="rate_limit_exceeded", retry_after=retry_after)


def internal(error: Exception | None = None) -> ApiError:
    """`error` is what failed in our own code."""
    if is_full(error):
        message = "The disk or the database of this Dominds is full. Free some space there, then try again."
        return ApiError(507, message, type="api_error", code="storage_full")
    return ApiError(
        500, "Dominds failed while it was answering. Its log has the details.", type="api_error", code="internal_error"
    )


# By our code: the HTTP status, OpenAI's type, and OpenAI's code where it has one.
OVERFLOW = (400, "invalid_request_error", "context_length_exceeded")
KNOWN: dict[str, tuple[int, str, str]] = {
    "context_overflow": OVERFLOW,
    "context_filled": OVERFLOW,
    "context_compaction_failed": (400, "invalid_request_error", "context_compaction_failed"),
    # At this code clients compact their own history, as they do with OpenAI.
    "compaction_off": (400, "invalid_request_error", "context_length_exceeded"),
    "limit_unavailable": (400, "invalid_request_error", "limit_unavailable"),
    "request_refused": (400, "invalid_request_error", "request_refused"),
    "messages_refused": (400, "invalid_request_error", "messages_refused"),
    "media_refused": (400, "invalid_request_error", "media_refused"),
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
    """The ApiError for a failed generation. `error` is the provider's last exception, if the provider failed."""
    if generation is None:
        return internal()
    return _worded(generation.error_code, generation.error_message or str(error or ""), error)


def failed_with(error: ProviderError) -> ApiError:
    """The ApiError for an exception that no generation recorded."""
    return _worded(error.code, str(error), error)


def _worded(code: str, words: str, error: ProviderError | None) -> ApiError:
    if code not in KNOWN:
        return internal()
    status, kind, theirs = KNOWN[code]
    if code == MediaRefused.code:
        words = f"{MediaRefused.__doc__} Its own words: {words}"
    if code == "authentication_refused":
        words = f"The provider refused the key that Dominds has for it: {words}"
    return ApiError(
        status,
        words or "The answer could not be made.",
        type=kind,
        code=theirs,
        param="messages" if code in MESSAGES else None,
        retry_after=error.retry_after if error else None,
    )
