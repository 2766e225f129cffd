"""Refusals in OpenAI's shape: a status, a code for programs, a sentence for whoever reads the log."""

from __future__ import annotations

import pytest
from django.utils import translation

from dialogs.api import errors
from dialogs.api.errors import ApiError

EVERY_ERROR = {
    "missing": (errors.missing_key(), 401, "invalid_api_key"),
    "unknown": (errors.unknown_key(), 401, "invalid_api_key"),
    "revoked": (errors.revoked_key(), 401, "invalid_api_key"),
    "expired": (errors.expired_key(), 401, "invalid_api_key"),
    "disabled owner": (errors.disabled_owner(), 401, "invalid_api_key"),
    "scope": (errors.insufficient_scope(), 403, "insufficient_scope"),
    "model": (errors.model_not_found("gpt-9"), 404, "model_not_found"),
    "path": (errors.not_found("/v1/nothing"), 404, "not_found"),
    "method": (errors.method_not_allowed("PUT", allowed=["GET"]), 405, "method_not_allowed"),
    "host": (errors.unknown_host(), 400, "host_not_allowed"),
    "size": (errors.too_large(1_000), 413, "request_too_large"),
    "rate": (errors.rate_limited(5, retry_after=3), 429, "rate_limit_exceeded"),
}


@pytest.mark.parametrize(("error", "status", "code"), EVERY_ERROR.values(), ids=EVERY_ERROR)
def test_an_error_has_the_four_fields_that_clients_read(error: ApiError, status: int, code: str) -> None:
    body = error.as_json()["error"]

    assert error.status == status
    assert body["code"] == code
    assert set(body) == {"message", "type", "param", "code"}
    assert body["message"].endswith(".")
    assert body["message"] == str(error)


def test_a_bad_request_names_the_field() -> None:
    body = errors.invalid_request("Must be a list.", param="messages[2].content").as_json()["error"]

    assert body == {
        "message": "Must be a list.",
        "type": "invalid_request_error",
        "param": "messages[2].content",
        "code": None,
    }


@pytest.mark.parametrize(("seconds", "said"), [(0.0, "1"), (0.2, "1"), (12.01, "13"), (60.0, "60")])
def test_a_client_is_never_told_to_come_back_too_early(seconds: float, said: str) -> None:
    assert errors.rate_limited(5, retry_after=seconds).headers == {"Retry-After": said}


def test_headers_say_how_to_send_a_key_and_which_methods_there_are() -> None:
    assert errors.missing_key().headers == {"WWW-Authenticate": "Bearer"}
    assert errors.method_not_allowed("PUT", allowed=["GET", "HEAD"]).headers == {"Allow": "GET, HEAD"}
    assert errors.model_not_found("gpt-9").headers == {}


def test_errors_stay_english_for_the_clients_logs() -> None:
    with translation.override("zh-hans"):
        message = errors.expired_key().message

    assert message.isascii()
