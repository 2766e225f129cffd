"""What `/v1` adds to a model server that answers at once, beside other gateways: `python -m benchmarks.api_latency`.

The same requests to the server itself and through each gateway, in turn, in one run: so many at a time, every one a
conversation of its own; then conversations that resend twenty turns and grow. Peers are installed by `--install`.
The load of the machine distorts milliseconds; it hardly distorts what a request costs the gateway's processes in CPU.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from statistics import quantiles
from urllib.parse import urlsplit

from benchmarks.gateways import GATEWAYS, Gateway, direct, install, installed, serving
from benchmarks.instant import ANSWER, FIRST

AT_ONCE = (1, 16, 64)
REQUESTS = 256
TURNS = 20
WARM_UP = 8
Message = dict[str, str]


@dataclass(frozen=True)
class Times:
    """Seconds from the request until the first word, and until the end of the stream."""

    first: float
    whole: float


@dataclass(frozen=True, kw_only=True)
class Measured:
    times: Sequence[Times]
    cpu_ms: float

    def percentiles(self, what: str) -> tuple[float, float]:
        """p50 and p95 in milliseconds."""
        marks = quantiles((getattr(one, what) * 1000 for one in self.times), n=20)
        return marks[9], marks[18]


class Client:
    """One connection that is kept. It reads no more than it must: a client that parses would be measured too."""

    def __init__(self, gateway: Gateway, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.gateway, self.reader, self.writer = gateway, reader, writer

    async def ask(self, messages: Sequence[Message]) -> Times:
        request, started = self._request(messages), time.perf_counter()
        self.writer.write(request)
        await self._until(FIRST.encode())
        first = time.perf_counter()
        await self._until(b"data: [DONE]\n\n")
        whole = time.perf_counter()
        await self._until(b"0\r\n\r\n")
        return Times(first - started, whole - started)

    async def _until(self, mark: bytes) -> None:
        await asyncio.wait_for(self.reader.readuntil(mark), 60)

    def _request(self, messages: Sequence[Message]) -> bytes:
        body = json.dumps({"model": self.gateway.model, "stream": True, "messages": messages}).encode()
        url = urlsplit(self.gateway.url)
        head = (
            f"POST {url.path}/chat/completions HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Type: application/json\r\n"
            f"Authorization: Bearer {self.gateway.key}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


@asynccontextmanager
async def connected(gateway: Gateway) -> AsyncIterator[Client]:
    url = urlsplit(gateway.url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port, limit=2**20)
    try:
        yield Client(gateway, reader, writer)
    finally:
        writer.close()


async def measured(gateway: Gateway, *, at_once: int, requests: int, turns: int) -> Measured:
    """So many clients side by side, each with its own conversations. What comes before `turns` is not timed."""
    each = max(2, requests // at_once)
    ready = asyncio.Barrier(at_once + 1)
    tasks = [asyncio.create_task(one_client(gateway, number, each, turns, ready)) for number in range(at_once)]
    await ready.wait()
    cpu = gateway.cpu_seconds()
    times = [time for task in tasks for time in await task]
    return Measured(times=times, cpu_ms=1000 * (gateway.cpu_seconds() - cpu) / len(times))


async def one_client(gateway: Gateway, number: int, requests: int, turns: int, ready: asyncio.Barrier) -> list[Times]:
    """Short conversations, one a request; or, with `turns`, one that had so many before and grows by one a request."""
    told = f"{os.getpid()}-{time.monotonic_ns()}-{number}"
    async with connected(gateway) as client:
        messages: list[Message] = []
        for turn in range(turns or WARM_UP // 4):
            messages = [*messages, *said(f"{told}, turn {turn}")] if turns else said(f"{told}, warm-up {turn}")
        await client.ask(messages[:-1])
        await ready.wait()
        times = []
        for request in range(requests):
            asked = said(f"{told}, request {request}")
            messages = [*messages, *asked] if turns else asked
            times.append(await client.ask(messages[:-1]))
        return times


def said(what: str) -> list[Message]:
    """A turn, with the answer that the server gives."""
    return [
        {"role": "user", "content": f"This is {what}: say twenty words about nothing in particular."},
        {"role": "assistant", "content": ANSWER},
    ]


def line(name: str, found: Measured, baseline: Measured) -> str:
    cells = []
    for what in ("first", "whole"):
        p50, p95 = found.percentiles(what)
        least = baseline.percentiles(what)[0]
        cells.append(f"{p50:8.1f}{p95:8.1f}{p50 - least:+9.1f}{p50 / least:7.1f}x")
    return f"{name:18}" + "".join(cells) + f"{found.cpu_ms:9.1f}"


def table(gateways: dict[str, Gateway], *, at_once: int, requests: int, turns: int) -> None:
    print(f"\n{at_once} at a time, {f'{turns} turns resent' if turns else 'new conversations'}")
    print(f"{'':18}{'first word: p50, p95, added, ratio':>32}{'whole answer: the same':>32}{'CPU ms':>9}")
    found: dict[str, Measured] = {}
    for name, gateway in gateways.items():
        found[name] = asyncio.run(measured(gateway, at_once=at_once, requests=requests, turns=turns))
        print(line(name, found[name], found["direct"]), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--install", action="store_true", help="install the peers first")
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--at-once", type=int, nargs="+", default=AT_ONCE)
    parser.add_argument("--only", nargs="+", choices=sorted(GATEWAYS), default=sorted(GATEWAYS))
    wanted = parser.parse_args()
    if wanted.install:
        install()
    with ExitStack() as opened:
        upstream = opened.enter_context(serving("benchmarks.instant"))
        gateways = {"direct": opened.enter_context(direct(upstream))}
        for name in wanted.only:
            if installed(name):
                gateways[name] = opened.enter_context(GATEWAYS[name](upstream))
            else:
                print(f"{name}: not installed (see --install)")
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        for turns in (0, TURNS):
            for at_once in wanted.at_once:
                table(gateways, at_once=at_once, requests=wanted.requests, turns=turns)


if __name__ == "__main__":
    main()
