"""What streams are made of: server-sent events, as OpenAI's chat completions have them, and Ollama's lines.

Every word of an answer is one, so they are read in few steps: an SDK takes three times as many.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from itertools import groupby, islice
from typing import Any

import httpx2

from dialogs.providers.base import BadAnswer, ReasoningDelta, StreamEvent, TextDelta

DONE = b"[DONE]"
# What JSON takes for white space.
WHITE = " \t\n\r"
_read = json.JSONDecoder().raw_decode
# What comes after the last event is read, or the connection could not be used again.
REST_SECONDS = 0.1


async def lines_of(response: httpx2.Response) -> AsyncGenerator[bytes, None]:
    """Each line that says something. Only a line feed ends one: httpx also takes signs for an end that texts hold."""
    rest: list[bytes] = []
    async for piece in response.aiter_bytes():
        first, *others = piece.split(b"\n")
        rest.append(first)
        for other in others:
            if (line := b"".join(rest)).strip():
                yield line
            rest = [other]
    if (line := b"".join(rest)).strip():
        yield line


async def events_of(response: httpx2.Response) -> AsyncGenerator[Iterator[Any], None]:
    """The JSON of the events that come at once, until the provider is done. ValueError, there, for what is no JSON."""
    reading, pieces = Reading(), response.aiter_bytes()
    async for piece in pieces:
        yield reading.events(piece)
        if reading.is_done:
            with suppress(TimeoutError, httpx2.TransportError, BadAnswer):
                async with asyncio.timeout(REST_SECONDS):
                    _rest = [piece async for piece in pieces]
            return


def joined(events: Iterator[StreamEvent]) -> Iterator[StreamEvent]:
    """What comes at once: the first by itself, as nobody shall wait for it, and all words after that as one piece."""
    yield from islice(events, 1)
    for kind, alike in groupby(_until_broken(events), type):
        if kind in (TextDelta, ReasoningDelta):
            yield kind("".join([one.text for one in alike if isinstance(one, TextDelta | ReasoningDelta)]))
        else:
            yield from map(_sound, alike)


def _until_broken(events: Iterator[StreamEvent]) -> Iterator[StreamEvent | Exception]:
    """What was said until then counts."""
    try:
        yield from events
    except Exception as error:
        yield error


def _sound(event: StreamEvent | Exception) -> StreamEvent:
    if isinstance(event, Exception):
        raise event
    return event


def _json_of(text: str) -> Any:
    """As `json.loads` reads it, in fewer steps."""
    text = text.strip(WHITE)
    found, end = _read(text)
    if end < len(text):
        raise json.JSONDecodeError("Extra data", text, end)
    return found


class Reading:
    """A stream of events, piece by piece. Of an event only its data is kept."""

    def __init__(self) -> None:
        # Of the line that has not ended yet.
        self._rest: list[bytes] = []
        self._data: list[bytes] = []
        self.is_done = False

    def events(self, piece: bytes) -> Iterator[Any]:
        """Of the events that are whole now, until the one that says that no more will come."""
        for data in self.add(piece):
            if data.lstrip().startswith(DONE):
                self.is_done = True
                return
            yield _json_of(data.decode())

    def add(self, piece: bytes) -> Iterator[bytes]:
        """The data of each event that is whole now."""
        self._rest.append(piece)
        # An image is one line in hundreds of pieces, which are put together once.
        if b"\n" not in piece and b"\r" not in piece:
            return
        lines = b"".join(self._rest).splitlines(keepends=True)
        # What ends with a carriage return may be half of a line's end.
        self._rest = [lines.pop()] if not lines[-1].endswith(b"\n") else []
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[5:])
            elif self._data and not line.strip():
                yield b"".join(self._data)
                self._data.clear()
