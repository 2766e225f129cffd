"""What a server may send: so much in one event of a stream, in a body, in what either unfolds to, and in one answer.

`HOOKS` are an HTTP client's, and stand between the connection and whoever reads the answer; `bounded` stands around
the events of any provider.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing
from typing import Any

import httpx2
from django.conf import settings

from dialogs.providers.base import AnswerEndless, ArgumentsDelta, BadAnswer, ReasoningDelta, StreamEvent, TextDelta

# One event of a stream: all between two empty lines of server-sent events, or one line. No call's arguments are longer.
LONGEST_EVENT_BYTES = 8 * 1024 * 1024
# A body that is no stream, and what a compressed stream unfolds to.
LONGEST_BODY_BYTES = 64 * 1024 * 1024
PIECE_BYTES = 64 * 1024
STREAMS = frozenset({"text/event-stream", "application/x-ndjson", "application/ndjson", "application/jsonl"})
ENDINGS = (b"\n\n", b"\r\r", b"\r\n\r\n")
# What can be unfolded piece by piece.
ENCODINGS = "gzip, deflate"

Hook = Callable[[Any], Awaitable[None]]


async def bounded(events: AsyncGenerator[StreamEvent, None]) -> AsyncGenerator[StreamEvent, None]:
    """These, until the answer is longer or has taken longer than one may. Silence is the read timeout's matter."""
    chars, until = 0, _until()
    most_chars = settings.DOMINDS_MAX_ANSWER_CHARS
    async with aclosing(events):
        async for event in events:
            yield event
            chars += len(event.text) if isinstance(event, TextDelta | ReasoningDelta | ArgumentsDelta) else 0
            if chars > most_chars:
                most = f"{most_chars:,} characters (DOMINDS_MAX_ANSWER_CHARS)"
                raise AnswerEndless(f"It was longer than {most}.")
            _refuse_after(until)


def _until() -> float:
    return time.monotonic() + settings.DOMINDS_MAX_ANSWER_SECONDS


def _refuse_after(until: float) -> None:
    if time.monotonic() > until:
        most = f"{settings.DOMINDS_MAX_ANSWER_SECONDS:,g} s (DOMINDS_MAX_ANSWER_SECONDS)"
        raise AnswerEndless(f"It took longer than {most}.")


async def ask_for_what_can_be_bounded(request: httpx2.Request) -> None:
    request.headers["accept-encoding"] = ENCODINGS


async def bound(response: httpx2.Response) -> None:
    """From now on, whoever reads the answer reads it unfolded, and gets BadAnswer where it does not end."""
    stream = response.stream
    assert isinstance(stream, httpx2.AsyncByteStream)
    encoding = response.headers.pop("content-encoding", "").strip().lower()
    response.stream = Bounded(stream, encoding=encoding, content_type=content_type(response))


HOOKS: dict[str, list[Hook]] = {"request": [ask_for_what_can_be_bounded], "response": [bound]}


class Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, *, encoding: str, content_type: str) -> None:
        self._stream, self._encoding = stream, encoding
        self._ending = _ends_events if content_type == "text/event-stream" else _ends_lines
        # Nothing says how long a stream as such may be: the driver does, which knows what of it is an answer.
        self._is_endless = content_type in STREAMS and encoding in {"", "identity"}
        self._is_stream = content_type in STREAMS
        self._all = self._pending = 0
        self._tail = b""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        unfold, until = _unfolding(self._encoding), _until()
        async for raw in self._stream:
            # What says nothing, as signs that a server lives, is no event and no silence either.
            _refuse_after(until)
            for piece in unfold(raw):
                self._count(piece)
                yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()

    def _count(self, piece: bytes) -> None:
        self._all += len(piece)
        seen = self._tail + piece
        ended = self._ending(seen)
        self._pending = len(seen) - ended if ended else self._pending + len(piece)
        self._tail = seen[-3:]
        if self._is_stream and self._pending > LONGEST_EVENT_BYTES:
            raise BadAnswer(f"More than {LONGEST_EVENT_BYTES:,} bytes came in one event.")
        if self._all > LONGEST_BODY_BYTES and not self._is_endless:
            raise BadAnswer(f"The answer is larger than {LONGEST_BODY_BYTES:,} bytes.")


def content_type(response: httpx2.Response) -> str:
    """In small letters, without its parameters."""
    kind: str = response.headers.get("content-type", "")
    return kind.partition(";")[0].strip().lower()


def _ends_events(text: bytes) -> int:
    """The place after the last complete event of a piece; 0 where none ends in it."""
    return max(at + len(ending) if (at := text.rfind(ending)) >= 0 else 0 for ending in ENDINGS)


def _ends_lines(text: bytes) -> int:
    return text.rfind(b"\n") + 1


def _unfolding(encoding: str) -> Callable[[bytes], Iterator[bytes]]:
    if encoding in {"", "identity"}:
        return lambda raw: iter((raw,))
    if encoding not in {"gzip", "x-gzip", "deflate"}:
        raise BadAnswer(f"The answer is compressed in a way that nobody asked for ({encoding[:40]}).")
    # Tells gzip and zlib apart by how they begin.
    unfolding = zlib.decompressobj(zlib.MAX_WBITS | 32)
    return lambda raw: _pieces(unfolding, raw)


def _pieces(unfolding: Any, raw: bytes) -> Iterator[bytes]:
    """However much a few bytes unfold to, never more than a piece of it is held."""
    piece = b""
    while raw or len(piece) == PIECE_BYTES:
        try:
            piece = unfolding.decompress(raw, PIECE_BYTES)
        except zlib.error as error:
            raise httpx2.DecodingError(str(error)) from error
        raw = unfolding.unconsumed_tail
        if piece:
            yield piece
