"""What providers over HTTP share: connecting, bounding an answer's bytes, refusing answers that are no stream, and
parsing streams (server-sent events, and Ollama's JSON lines).

Each token is an event, so parsing must be fast: an SDK takes three times as many steps.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import time
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from functools import cache
from itertools import groupby, islice
from threading import Lock
from typing import Any, cast

import httpx2
from django.conf import settings

from dialogs.providers.base import (
    AnswerEndless,
    ArgumentsDelta,
    BadAnswer,
    ProviderSettings,
    ProviderUnreachable,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
)
from dialogs.providers.errors import from_answer

# Below the 60 seconds after which most proxies close an idle connection.
KEEP_ALIVE_SECONDS = 45.0
# No limit of concurrent requests: a hidden queue would delay them, and a full server says so. Few idle connections,
# since each request searches all of them.
LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=KEEP_ALIVE_SECONDS)
_one_at_a_time = Lock()
DONE = b"[DONE]"
NOTHING_CAME = "The stream ended before the answer began."
# What JSON takes for white space.
WHITE = " \t\n\r"
_read = json.JSONDecoder().raw_decode
# The bytes after the last event are read for so long: else the connection could not be used again.
REST_SECONDS = 0.1


def connecting(settings: ProviderSettings) -> dict[str, Any]:
    """Options for an HTTP client. Redirects are not followed, so that a key is sent nowhere else."""
    return {
        "verify": certificates(),
        "limits": LIMITS,
        "timeout": timeouts(settings),
        "follow_redirects": False,
        "event_hooks": HOOKS,
    }


def timeouts(settings: ProviderSettings) -> httpx2.Timeout:
    """The read timeout is the longest silence, not the longest answer."""
    return httpx2.Timeout(settings.read_timeout, connect=settings.connect_timeout)


def certificates() -> ssl.SSLContext:
    """One SSL context for the process: reading the system's certificates is the slowest part of making a client."""
    with _one_at_a_time:
        return _load_certificates()


@cache
def _load_certificates() -> ssl.SSLContext:
    context = httpx2.create_ssl_context()
    context.set_alpn_protocols(["http/1.1"])
    # Each new connection would set this again, while another thread may read it without the GIL.
    context.set_alpn_protocols = lambda alpn_protocols: None  # type: ignore[method-assign]
    return context


async def refuse_error(response: httpx2.Response) -> None:
    if response.is_success:
        return
    await response.aread()
    try:
        body = response.json()
    except ValueError:
        body = response.text
    raise from_answer(response.status_code, body, headers=response.headers)


async def refuse_other_than_stream(response: httpx2.Response) -> None:
    """A 200 that is a page, or one JSON object, is no stream; what it says may be an error all the same."""
    kind = content_type(response)
    if kind == "text/html":
        raise BadAnswer("The provider answered an HTML page, which no LLM service sends. Is the base URL right?")
    if kind == "application/json":
        await response.aread()
        body = json_of(response)
        if isinstance(body, dict) and body.get("error"):
            raise from_answer(response.status_code, body)
        raise BadAnswer("The provider answered without streaming.")


def json_of(response: httpx2.Response) -> Any:
    """The body as JSON. Raises BadAnswer, so that an HTML page with status 200 is named for what it is."""
    try:
        return response.json()
    except ValueError as error:
        kind = response.headers.get("content-type", "no content type")
        raise BadAnswer(f"The provider answered no JSON ({kind}). Is the base URL right?") from error


def as_event(sent: object) -> Mapping[str, Any]:
    """The event as a mapping. The SDKs pass on JSON of any shape."""
    if not isinstance(sent, dict):
        raise BadAnswer(f"The provider sent {type(sent).__name__} where an object is due.")
    return sent


async def lines_of(response: httpx2.Response) -> AsyncGenerator[bytes, None]:
    """Each line that is not empty. Only a line feed ends one: httpx also splits at characters that texts may contain.

    Raises ProviderUnreachable where nothing comes at all.
    """
    rest: list[bytes] = []
    has_begun = False
    async for piece in response.aiter_bytes():
        has_begun = True
        first, *others = piece.split(b"\n")
        rest.append(first)
        for other in others:
            if (line := b"".join(rest)).strip():
                yield line
            rest = [other]
    if not has_begun:
        raise ProviderUnreachable(NOTHING_CAME)
    if (line := b"".join(rest)).strip():
        yield line


async def events_of(response: httpx2.Response) -> AsyncGenerator[Iterator[Any], None]:
    """The JSON of the events that come at once, until the provider is done. ValueError, there, for what is no JSON.

    Raises ProviderUnreachable where none came: whoever was to answer was lost by a proxy that had begun to.
    """
    reading, pieces = EventParser(), response.aiter_bytes()
    async for piece in pieces:
        yield reading.events(piece)
        if reading.is_done:
            with suppress(TimeoutError, httpx2.TransportError, BadAnswer):
                async with asyncio.timeout(REST_SECONDS):
                    _rest = [piece async for piece in pieces]
            return
    if not reading.has_begun:
        raise ProviderUnreachable(NOTHING_CAME)


def joined(events: Iterator[StreamEvent]) -> Iterator[StreamEvent]:
    """Events that come at once: the first text alone, without delay, and all texts after it as one piece."""
    yield from islice(events, 1)
    for kind, alike in groupby(_until_broken(events), type):
        if kind in (TextDelta, ReasoningDelta):
            yield kind("".join([one.text for one in cast("Iterator[TextDelta]", alike)]))
        else:
            yield from map(_sound, alike)


def _until_broken(events: Iterator[StreamEvent]) -> Iterator[StreamEvent | Exception]:
    """The events, and last the error that ended them: the text before it counts."""
    try:
        yield from events
    except Exception as error:
        yield error


def _sound(event: StreamEvent | Exception) -> StreamEvent:
    if isinstance(event, Exception):
        raise event
    return event


def _all_json_of(said: Sequence[bytes]) -> Iterable[Any]:
    """The events parsed as one JSON list; where that fails, one by one until the invalid one."""
    if len(said) > 1:
        with suppress(ValueError):
            found = _json_of(b"[%b]" % b",".join(said))
            if len(found) == len(said):
                return cast("list[Any]", found)
    return map(_json_of, said)


def _json_of(said: bytes) -> Any:
    """The same as `json.loads`, faster."""
    text = said.decode().strip(WHITE)
    found, end = _read(text)
    if end < len(text):
        raise json.JSONDecodeError("Extra data", text, end)
    return found


class EventParser:
    """A stream of events, piece by piece. Of an event only its data is kept."""

    def __init__(self) -> None:
        # The pieces of the line whose end has not come yet.
        self._rest: list[bytes] = []
        self._data: list[bytes] = []
        self.has_begun = self.is_done = False

    def events(self, piece: bytes) -> Iterator[Any]:
        """The events that are complete now, up to the one that ends the stream."""
        whole = list(self.add(piece))
        done = next((at for at, data in enumerate(whole) if DONE in data and data.lstrip().startswith(DONE)), None)
        self.is_done = done is not None
        yield from _all_json_of(whole[:done])

    def add(self, piece: bytes) -> Iterator[bytes]:
        """Take in a piece of the stream; the data of each event that is complete now."""
        self._rest.append(piece)
        # A line with an image comes in hundreds of pieces: they are joined once.
        if b"\n" not in piece and b"\r" not in piece:
            return
        lines = b"".join(self._rest).splitlines(keepends=True)
        # A carriage return at the end may be the first half of "\r\n".
        self._rest = [lines.pop()] if not lines[-1].endswith(b"\n") else []
        for line in lines:
            if line[:5] == b"data:":
                self._data.append(line[5:])
            elif self._data and (line == b"\n" or not line.strip()):
                self.has_begun = True
                yield b"".join(self._data) if len(self._data) > 1 else self._data[0]
                self._data.clear()


# One event of a stream: all between two empty lines of server-sent events, or one line. No call's arguments are longer.
LONGEST_EVENT_BYTES = 8 * 1024 * 1024
# The most bytes of a body that is no stream, and of a stream after decompression.
LONGEST_BODY_BYTES = 64 * 1024 * 1024
PIECE_BYTES = 64 * 1024
STREAMS = frozenset({"text/event-stream", "application/x-ndjson", "application/ndjson", "application/jsonl"})
ENDINGS = (b"\n\n", b"\r\r", b"\r\n\r\n")
# The encodings that can be decompressed piece by piece.
ENCODINGS = "gzip, deflate"

Hook = Callable[[Any], Awaitable[None]]


async def bounded(events: AsyncGenerator[StreamEvent, None]) -> AsyncGenerator[StreamEvent, None]:
    """The events, until the answer is too long in characters or seconds. Silence is bounded by the read timeout."""
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
    """Replace the response's stream by one that decompresses it and raises BadAnswer above the bound."""
    stream = response.stream
    assert isinstance(stream, httpx2.AsyncByteStream)
    encoding = response.headers.pop("content-encoding", "").strip().lower()
    response.stream = BoundedStream(stream, encoding=encoding, content_type=content_type(response))


HOOKS: dict[str, list[Hook]] = {"request": [ask_for_what_can_be_bounded], "response": [bound]}


class BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, *, encoding: str, content_type: str) -> None:
        self._stream, self._encoding = stream, encoding
        self._ending = _ends_events if content_type == "text/event-stream" else _ends_lines
        # A plain stream has no bound here: the driver bounds the answer in it.
        self._is_endless = content_type in STREAMS and encoding in {"", "identity"}
        self._is_stream = content_type in STREAMS
        self._all = self._pending = 0
        self._tail = b""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        unfold, until = _unfolding(self._encoding), _until()
        async for raw in self._stream:
            # Keep-alive comments are no events, and never let the read timeout pass: the whole time is bounded here.
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
    """The index after the last complete event in a piece; 0 if none ends in it."""
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
    """Decompress in pieces of bounded size, so that a few bytes that expand to gigabytes take no memory."""
    piece = b""
    while raw or len(piece) == PIECE_BYTES:
        try:
            piece = unfolding.decompress(raw, PIECE_BYTES)
        except zlib.error as error:
            raise httpx2.DecodingError(str(error)) from error
        raw = unfolding.unconsumed_tail
        if piece:
            yield piece
