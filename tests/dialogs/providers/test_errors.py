"""The translation of SDK errors, where no server is needed to see it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import httpx2
import openai
import pytest

from dialogs.providers.base import (
    BadAnswer,
    MediaRefused,
    NotConfigured,
    ProviderError,
    ProviderFailed,
    ProviderSettings,
    ProviderUnreachable,
    RequestRefused,
    ToolsRefused,
)
from dialogs.providers.errors import error_text, from_answer, redacted, retry_after, translate, translated

SETTINGS = ProviderSettings(name="x", kind="openai", base_url="http://host", api_key="s3cret-value")
NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("30", 30),
        ("1.5", 1.5),
        ("Sat, 21 Nov 2026 12:00:45 GMT", 45),
        ("Sat, 21 Nov 2026 13:00:45 +0100", 45),
        ("Sat, 21 Nov 2026 12:00:45", 45),  # no zone: read as UTC
        ("Sat, 21 Nov 2026 11:00:00 GMT", 0),  # past
        ("9" * 400, None),
        ("Sat, 99 Nov 2026 12:00:45 GMT", None),
        ("nan", None),
        ("-1", None),
    ],
)
def test_a_wished_pause_is_read_in_both_forms(value: str, seconds: float | None) -> None:
    assert retry_after({"retry-after": value}, now=NOON) == seconds


@pytest.mark.parametrize(("milliseconds", "seconds"), [("1250", 1.25), ("0", 0), ("soon", 30), ("-1", 30), ("", 30)])
def test_milliseconds_count_where_they_are_a_number(milliseconds: str, seconds: float) -> None:
    assert retry_after({"retry-after": "30", "retry-after-ms": milliseconds}, now=NOON) == seconds


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (302, "", BadAnswer),
        (402, {"error": {"message": "pay"}}, RequestRefused),
        (408, "", ProviderUnreachable),
        (418, "", RequestRefused),
        (502, "bad gateway", ProviderFailed),
        (None, None, ProviderFailed),
        (None, {"error": {"code": "599"}}, ProviderFailed),
        (None, {"error": {"code": 200}}, ProviderFailed),
    ],
)
def test_a_status_has_its_error(status: int | None, body: Any, kind: type[ProviderError]) -> None:
    assert type(from_answer(status, body)) is kind


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"error": {"message": "a\n  b"}}, "HTTP 400: a b"),
        ({"detail": "wrong"}, "HTTP 400: wrong"),
        ({"error": {"code": "some_code"}}, "HTTP 400: some_code"),
        ({"detail": [{"msg": "field required"}]}, "HTTP 400: [{'msg': 'field required'}]"),
        ("plain", "HTTP 400: plain"),
        ("", "HTTP 400: no further explanation"),
        (None, "HTTP 400: no further explanation"),
        (["odd"], "HTTP 400: ['odd']"),
    ],
)
def test_the_provider_s_words_are_found_wherever_they_stand(body: Any, text: str) -> None:
    assert error_text(body, 400) == text


def test_words_are_kept_short() -> None:
    assert len(error_text("x" * 100_000, 400)) == 1000


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("key s3cret-value is wrong", "key [key] is wrong"),
        ("sk-proj-abcdefgh and gsk_abcdefgh and AIzaSyA1234567890", "[key] and [key] and [key]"),
        ("Authorization: Bearer abcdef123456", "Authorization: Bearer [key]"),
        ("masked sk-abcd****wxyz", "masked [key]"),
        # Ordinary words stay.
        ("the task-based desk-lamp and sk-1", "the task-based desk-lamp and sk-1"),
    ],
)
def test_whatever_looks_like_a_key_is_hidden(text: str, shown: str) -> None:
    assert redacted(text, "s3cret-value") == shown


def test_a_mistake_of_our_own_stays_what_it_is() -> None:
    mistake = KeyError("ours")

    with pytest.raises(KeyError), translated(openai, SETTINGS):
        raise mistake

    assert translate(mistake, sdk=openai, settings=SETTINGS) is None


def test_a_url_that_the_library_refuses_is_a_matter_of_settings() -> None:
    assert isinstance(translate(httpx2.InvalidURL("no"), sdk=openai, settings=SETTINGS), NotConfigured)


def test_an_error_that_quotes_the_key_in_a_header_is_redacted_and_not_chained() -> None:
    with pytest.raises(ProviderUnreachable) as caught, translated(openai, SETTINGS):
        raise httpx2.LocalProtocolError("Illegal header value b'Bearer s3cret-value'")

    assert "s3cret" not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "registry/library/gemma does not support tools"),  # Ollama
        (500, "tools param requires --jinja flag"),  # llama.cpp
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),  # vLLM
        (404, "No endpoints found that support tool use. Try disabling a tool."),  # OpenRouter
        (400, "Function calling is not supported with this model"),
        (None, "tool calling not supported"),  # inside a stream
    ],
)
def test_a_server_that_takes_no_tools_is_recognised(status: int | None, words: str) -> None:
    assert isinstance(from_answer(status, {"error": {"message": words}}), ToolsRefused)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"),
        (500, "audio input is not supported - hint: if this is unexpected, you may need to provide the mmproj"),
        (500, "this model is missing data required for image input"),  # Ollama
        (400, "llama-3 is not a multimodal model"),  # vLLM
        (404, "No endpoints found that support image input"),  # OpenRouter
        (400, "Model does not support images. Please use a model that does."),  # LM Studio
    ],
)
def test_a_model_that_reads_no_images_is_recognised_and_not_asked_again(status: int, words: str) -> None:
    found = from_answer(status, {"error": {"message": words}})

    assert isinstance(found, MediaRefused)
    assert not found.retryable


@pytest.mark.parametrize("words", ["tool_call_id is missing", "invalid tools[0].function.name", "unsupported file"])
def test_a_wrong_call_is_no_refusal_of_tools(words: str) -> None:
    assert type(from_answer(400, {"error": {"message": words}})) is RequestRefused
