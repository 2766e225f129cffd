"""Server-sent events, however they are cut into pieces and whatever ends their lines."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from dialogs.providers.base import Finished, ProviderFailed, ReasoningDelta, StreamEvent, TextDelta
from dialogs.providers.http import EventParser, joined

SENT = (
    b': a comment\n\nevent: word\ndata: {"a":\ndata: 1}\n\nid: 7\n\n'
    b'data:"\xe4\xbd\xa0\xe5\xa5\xbd \xe2\x80\xa8"\n\n\ndata: [DONE]\n\n'
)


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
@pytest.mark.parametrize("size", [1, 2, 7, 1_000])
def test_events_are_the_same_however_they_are_cut(ending: bytes, size: int) -> None:
    sent, reading = SENT.replace(b"\n", ending), EventParser()

    pieces = [sent[at : at + size] for at in range(0, len(sent), size)]
    found = [data.split() for piece in pieces for data in reading.add(piece)]

    assert found == [[b'{"a":', b"1}"], ['"你好'.encode(), '\u2028"'.encode()], [b"[DONE]"]]


def test_a_carriage_return_alone_ends_a_line() -> None:
    reading = EventParser()

    assert list(reading.add(b"data: 1\r\rdata: 2\r\r")) == [b" 1\r"]
    assert list(reading.add(b": more\r")) == [b" 2\r"]


def test_an_event_that_is_not_whole_is_none() -> None:
    assert list(EventParser().add(b"data: 1\n")) == []


def test_an_event_that_comes_in_many_pieces_is_read_once() -> None:
    """An image in one event: read anew with each piece, all other answers of this process would stand still."""
    reading, piece = EventParser(), b"x" * 2_000
    begun = time.process_time()

    for part in (b'data: "', *[piece] * 3_000):
        assert list(reading.add(part)) == []
    (found,) = reading.add(b'"\n\n')

    assert len(found) == 6_000_004
    assert time.process_time() - begun < 1


def test_of_what_comes_at_once_the_first_goes_alone_and_words_after_it_are_one() -> None:
    came = [*map(TextDelta, "abc"), *map(ReasoningDelta, "de"), Finished("stop"), TextDelta("f"), TextDelta("g")]

    assert list(joined(iter(came))) == [
        TextDelta("a"),
        TextDelta("bc"),
        ReasoningDelta("de"),
        Finished("stop"),
        TextDelta("fg"),
    ]
    assert list(joined(iter(()))) == []


def test_words_before_what_is_broken_are_told() -> None:
    def came() -> Iterator[StreamEvent]:
        yield from map(TextDelta, "abc")
        raise ProviderFailed("It broke.")

    found: list[StreamEvent] = []
    with pytest.raises(ProviderFailed, match="It broke"):
        found.extend(joined(came()))

    assert found == [TextDelta("a"), TextDelta("bc")]


def test_nothing_is_read_behind_the_event_that_says_so() -> None:
    reading = EventParser()

    assert list(reading.events(b"data: 1\n\n")) == [1]
    assert not reading.is_done
    assert list(reading.events(b"data: 2\n\ndata: [DONE]\n\ndata: no JSON\n\n")) == [2]
    assert reading.is_done


@pytest.mark.parametrize("data", [b' {"a": 1}', b'\t{"a": 1} \r', b"[1, 2]", b'"\xe4\xbd\xa0"', b"null", b" 1.5"])
def test_what_an_event_says_is_read_as_json(data: bytes) -> None:
    assert list(EventParser().events(b"data:" + data + b"\n\n")) == [json.loads(data)]


@pytest.mark.parametrize("data", [b'{"a": 1} x', b'{"a": 1}{', b"", b"{", b"\xc2\xa01"])
def test_what_is_no_json_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError, match="line 1"):
        list(EventParser().events(b"data:" + data + b"\n\n"))


@pytest.mark.parametrize("broken", [b"{", b'{"a": [1', b"\xff", b"1, 2", b""])
def test_events_before_one_that_is_no_json_are_read(broken: bytes) -> None:
    found: list[object] = []

    with pytest.raises(ValueError, match=r"line 1|decode"):
        found.extend(EventParser().events(b'data: {"a": 1}\n\ndata: 2\n\ndata: ' + broken + b"\n\ndata: 2]}\n\n"))

    assert found == [{"a": 1}, 2]
