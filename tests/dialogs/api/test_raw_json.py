"""JSON as clients send it: what no database takes is mended, what is no number is refused, all else is as it was."""

from __future__ import annotations

import json

import pytest

from dialogs.api.errors import ApiError
from dialogs.api.schemas import in_range, parsed, read_json


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
