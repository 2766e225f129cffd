"""A real HTTP server on loopback that answers as it is told, byte for byte, and keeps what it was asked.

It speaks to the real SDKs over the wire, so a test sees what a server's misbehaviour really does.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Asked:
    """One request as it came in."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What to send: `pieces` one by one, then the ending: "whole", "cut" (mid-chunk), "close", or "hang"."""

    status: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    pieces: tuple[bytes, ...] = ()
    delay: float = 0.0
    ending: str = "whole"


def as_json(body: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    return Reply(status=status, headers=headers or {}, pieces=(json.dumps(body).encode(),))


def as_html(status: int = 200) -> Reply:
    page = b"<!DOCTYPE html><html><body>Welcome to nginx!</body></html>"
    return Reply(status=status, content_type="text/html; charset=utf-8", pieces=(page,))


def as_stream(pieces: Iterable[bytes], *, ending: str = "whole", delay: float = 0.0) -> Reply:
    return Reply(content_type="text/event-stream", pieces=tuple(pieces), ending=ending, delay=delay)


def data(payload: object) -> bytes:
    """One server-sent event; a text is sent as it stands."""
    text = payload if isinstance(payload, str) else json.dumps(payload)
    return f"data: {text}\n\n".encode()


def named(name: str, payload: object) -> bytes:
    return f"event: {name}\n".encode() + data(payload)


class Upstream:
    """Replies are set by path; a list is played one reply a request, the last again and again."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[Asked] = []
        self.replies: dict[str, list[Reply]] = {}
        self.answers: dict[str, Callable[[Asked], Reply]] = {}
        # How many connections were opened, and how many still are.
        self.connections = self.open = 0
        # Nobody is answered before so many have asked.
        self.crowd = 0
        # Set once a client has closed its connection before the reply was over.
        self.client_left = asyncio.Event()
        # Set when the test is over: whatever still hangs lets go.
        self.over = asyncio.Event()

    def on(self, path: str, *replies: Reply) -> None:
        self.replies[path] = list(replies)

    def answer(self, path: str, reply: Callable[[Asked], Reply]) -> None:
        """Where the reply depends on what is asked."""
        self.answers[path] = reply

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        try:
            while asked := await _read(reader):
                self.asked.append(asked)
                await self._gather_crowd(reader)
                await self._send(writer, self._reply(asked))
        except (ConnectionError, _Left):
            self.client_left.set()
        finally:
            self.open -= 1
            writer.close()

    async def _gather_crowd(self, reader: asyncio.StreamReader) -> None:
        while len(self.asked) < self.crowd:
            await asyncio.sleep(0.005)
            if reader.at_eof():
                raise _Left

    def _reply(self, asked: Asked) -> Reply:
        path = asked.path
        if path in self.answers:
            return self.answers[path](asked)
        waiting = self.replies.get(path) or self.replies.get(path.partition("?")[0])
        if not waiting:
            return as_json({"error": {"message": f"no such path: {path}", "type": "not_found"}}, status=404)
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]

    async def _send(self, writer: asyncio.StreamWriter, reply: Reply) -> None:
        head = {"content-type": reply.content_type, "transfer-encoding": "chunked", **reply.headers}
        lines = [f"HTTP/1.1 {reply.status} Told", *(f"{name}: {value}" for name, value in head.items())]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        for piece in reply.pieces:
            await asyncio.sleep(reply.delay)
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
            if writer.transport.is_closing():
                raise _Left
        await self._end(writer, reply.ending)

    async def _end(self, writer: asyncio.StreamWriter, ending: str) -> None:
        if ending == "whole":
            writer.write(b"0\r\n\r\n")
        elif ending == "cut":
            writer.write(b'ff\r\ndata: {"choi')
        elif ending == "hang":
            await writer.drain()
            await self.over.wait()
        if ending != "whole":
            await writer.drain()
            raise _Left


class _Left(Exception):
    """The connection is over."""


async def _read(reader: asyncio.StreamReader) -> Asked | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    method, path, _ = first.split(" ")
    return Asked(method, path, headers, body)


@asynccontextmanager
async def upstream() -> AsyncIterator[Upstream]:
    """A server for one test, on a port of its own."""
    told = Upstream()
    server = await asyncio.start_server(told.serve, "127.0.0.1", 0)
    told.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield told
    finally:
        told.over.set()
        server.close()
