"""What a body may hold, and with which words it is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.utils import translation

from dialogs.api import errors
from dialogs.api.errors import ApiError
from dialogs.api.reading import BodyCache
from dialogs.api.schemas import ChatBody, in_range, parsed, read_json


def body(**fields: Any) -> ChatBody:
    raw = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hello"}]} | fields)
    return BodyCache().read(raw.encode(), root="alice")[0]


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens", "seed", "n"])
def test_an_integer_may_be_written_with_a_point(field: str) -> None:
    assert getattr(body(**{field: 1.0}), field) == 1


@pytest.mark.parametrize("number", [1.5, "1", True, 0.0, 2.1e9])
def test_what_is_no_number_of_tokens_is_refused_by_its_name(number: object) -> None:
    with pytest.raises(ApiError) as refused:
        body(max_tokens=number)

    assert refused.value.status == 400
    assert refused.value.param == "max_tokens"


# JSON as clients send it: what no database takes is mended, what is no number is refused, all else is as it was.


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (r'"cut in two \ud83d"', "cut in two \ufffd"),
        (r'"\ude00 the other half"', "\ufffd the other half"),
        (r'"\ud83d\ud83d\ude00"', "\ufffd😀"),
        (r'"a NUL: \u0000."', "a NUL: ␀."),
        (r'{"\u0000": ["\ud83d"]}', {"␀": ["\ufffd"]}),
        (r'"no escapes: \\u0000 \\ud83d \ud83d"', r"no escapes: \u0000 \ud83d " + "\ufffd"),
        (r'"whole: \ud83d\ude00 \u00e9 \n"', "whole: 😀 é \n"),
    ],
)
def test_what_no_database_takes_is_mended(sent: str, read: object) -> None:
    assert parsed(sent.encode()) == read


@pytest.mark.parametrize("sent", ["NaN", "[-Infinity]", '{"a": 1e999}', "[[-1e400]]", "9" * 400 + ".0"])
def test_what_is_no_number_is_refused(sent: str) -> None:
    with pytest.raises(ApiError, match=r"out of range|line 1"):
        in_range(read_json(sent.encode()))


@pytest.mark.parametrize("sent", [b"", b"{", b"[" * 1000, b'"\xff"', '{"a": 1}'.encode("utf-16"), b"9" * 5000])
def test_what_is_no_json_is_refused(sent: bytes) -> None:
    with pytest.raises(ValueError, match="line 1"):
        parsed(sent)


def test_all_else_is_as_it_was() -> None:
    value = {"a": [1, -0.5, True, None, "é😀\u2028\\", {}], "b": 10**30}

    assert parsed(json.dumps(value).encode()) == value
    assert parsed(json.dumps(value, ensure_ascii=False).encode()) == value


# Refusals in OpenAI's shape: a status, a code for programs, a sentence for whoever reads the log.


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
