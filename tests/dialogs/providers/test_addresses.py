"""The one validator of base URLs."""

from __future__ import annotations

import pytest

from dialogs.providers.addresses import InvalidAddress, api_root, clean_base_url, openai_base, with_scheme


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("  https://api.example.com/v1/  ", "https://api.example.com/v1"),
        ("http://localhost", "http://localhost"),
        ("http://[::1]:8080/v1", "http://[::1]:8080/v1"),
        ("HTTPS://Example.com/v1", "HTTPS://Example.com/v1"),
        # What every address begins with may be left out.
        ("localhost:8080/", "http://localhost:8080"),
        ("api.example.com/v1", "https://api.example.com/v1"),
        # What is copied with it, the path of a request, is left out.
        ("http://127.0.0.1:1234/v1/chat/completions", "http://127.0.0.1:1234/v1"),
        ("http://127.0.0.1:1234/v1/models/", "http://127.0.0.1:1234/v1"),
        ("http://localhost:11434/api/chat", "http://localhost:11434/api"),
        ("https://name.example.com/models", "https://name.example.com/models"),
        ("https://host_with_underscore/v1beta/openai", "https://host_with_underscore/v1beta/openai"),
    ],
)
def test_an_http_address_is_taken(typed: str, stored: str) -> None:
    assert clean_base_url(typed, kind="openai") == stored


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("", "starts with http://"),
        ("not a URL", "no blanks"),
        ("ftp://host", "starts with http://"),
        ("file:///etc/passwd", "starts with http://"),
        ("javascript:alert(1)", "starts with http://"),
        ("http://", "starts with http://"),
        ("http:///v1", "starts with http://"),
        ("http://ho$t", "starts with http://"),
        ("http://host:99999", "no URL"),
        ("http://host:port", "no URL"),
        ("http://[::1", "no URL"),
        ("http://host/v1\nX-Header: 1", "control characters"),
        ("http://host\\@evil", "backslashes"),
        ("http://host/v1\0", "control characters"),
        ("http://user:secret@host/v1", "Leave user name and password out"),
        ("http://user@host/v1", "Leave user name and password out"),
        ("http://host/v1?key=secret", "leave out what follows"),
        ("http://host/v1#part", "leave out what follows"),
    ],
)
def test_anything_else_is_refused_in_words_that_quote_no_secret(typed: str, words: str) -> None:
    with pytest.raises(InvalidAddress, match=words) as caught:
        clean_base_url(typed, kind="openai")

    assert "secret" not in str(caught.value)


def test_a_script_is_named_by_a_path_inside_the_data_folder() -> None:
    assert clean_base_url("scripts/one.json", kind="scripted") == "scripts/one.json"

    for typed in ("", "/etc/passwd", "../one.json", "a/../../one.json", "a\\b", "a\0b"):
        with pytest.raises(InvalidAddress):
            clean_base_url(typed, kind="scripted")


@pytest.mark.parametrize(
    ("written", "base", "root"),
    [
        ("http://host", "http://host/v1", "http://host"),
        ("http://host/", "http://host/v1", "http://host"),
        ("http://host/v1", "http://host/v1", "http://host"),
        # A written path is meant: Google's ends in /openai.
        ("http://host/v1beta/openai", "http://host/v1beta/openai", "http://host/v1beta/openai"),
    ],
)
def test_v1_may_be_written_or_not(written: str, base: str, root: str) -> None:
    assert (openai_base(written), api_root(written)) == (base, root)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("localhost:9999", "http://localhost:9999"),
        (" 192.168.1.20:1234/v1 ", "http://192.168.1.20:1234/v1"),
        ("10.0.0.7/v1", "http://10.0.0.7/v1"),
        ("[::1]:8080", "http://[::1]:8080"),
        ("llama", "http://llama"),
        ("api.example.com/v1", "https://api.example.com/v1"),
        ("https://api.example.com", "https://api.example.com"),
        ("javascript:alert(1)", "javascript:alert(1)"),
        ("user:secret@host", "user:secret@host"),
        ("", ""),
    ],
)
def test_a_host_gets_the_scheme_that_it_lacks(typed: str, meant: str) -> None:
    assert with_scheme(typed) == meant
