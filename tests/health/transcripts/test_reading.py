"""A file with a chat is known by its content; what is broken is told with its place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from health.transcripts import NotATranscript, read

HELLO = {"role": "user", "content": "hello \u2028 there"}
HI = {"role": "assistant", "content": "hi"}


def as_file(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def as_lines(*values: Any) -> bytes:
    return b"\n".join(map(as_file, values)) + b"\n"


@pytest.mark.parametrize(
    "data",
    [
        as_file([HELLO, HI]),
        b"\xef\xbb\xbf" + as_file([HELLO, HI]),
        json.dumps([HELLO, HI], indent=2).encode(),
        as_lines(HELLO, HI),
        b"\n\n" + as_lines(HELLO, HI).replace(b"\n", b"\r\n\r\n"),
        as_file({"model": "m", "messages": [HELLO, HI]}),
        as_lines({"messages": [HELLO, HI]}, {"messages": [HI]}),
    ],
)
def test_messages_are_read_in_every_common_form(data: bytes) -> None:
    assert read(data).messages == [HELLO, HI]


def test_a_file_of_one_message_is_a_chat() -> None:
    assert read(as_file(HELLO)).messages == [HELLO]


def test_the_tools_of_a_request_come_along() -> None:
    tool = {"type": "function", "function": {"name": "ls", "parameters": {}}}

    assert read(as_file({"messages": [HELLO], "tools": [tool]})).tools == (tool,)


def test_of_several_chats_for_fine_tuning_the_first_is_read_and_that_is_said() -> None:
    assert read(as_lines({"messages": [HELLO]}, {"messages": [HI]})).notes == ("The first of 2 chats was read.",)


def test_entries_that_are_no_messages_are_left_for_the_border_to_refuse() -> None:
    assert read(as_file([HELLO, "what?", {"text": "no role"}])).messages == [HELLO, "what?", {"text": "no role"}]


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "It is empty"),
        (b" \n\n\t", "It is empty"),
        (b"\xff\xfe\x00", "not UTF-8 text (byte 0)"),
        (b"PK\x03\x04 a zip", "It is not JSON: line 1"),
        (b"hello\nworld\n", "It is not JSON: line 1"),
        (b'[{"role": "user", "content": "cut o', "It is not JSON: line 1"),
        (as_lines(HELLO, HI) + b'{"role": "user", "cont', "Line 3 is not JSON; is the file cut off?"),
        (as_lines(HELLO) + b"[1, 2]\n" + as_lines(HI), "Line 2 is list"),
        (b"[]", "no messages"),
        (b'{"messages": []}', "no messages"),
        (b'{"messages": "hello"}', "not a list"),
        (b"[1, 2, 3]", "no objects"),
        (b"42", "no objects"),
        (b"null", "no objects"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[" + b"9" * 5_000 + b"]", "a number of thousands of digits"),
        (b'{"mapping": 7}', "not a tree"),
        (b'[{"mapping": {"a": {"message": {"author": 7, "content": {"parts": ["x"]}}}}}]', "built in another way"),
        (b'[{"id": "1", "chat": {"history": {"messages": {"a": {"files": [7]}}}}}]', "built in another way"),
        (b'[{"id": "1", "chat": null}]', "no messages (Open WebUI export)"),
        (b'{"type": "summary", "sessionId": "s", "summary": "?"}', "no messages (Claude Code log)"),
    ],
)
def test_what_is_no_chat_is_refused_with_the_reason(data: bytes, complaint: str) -> None:
    with pytest.raises(NotATranscript) as refused:
        read(data)

    assert complaint in str(refused.value)
