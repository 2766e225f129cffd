"""What `/v1` adds to a model server that answers at once, beside other gateways: `python -m benchmarks.api_latency`.

The same requests to the server itself and through each gateway, in turn, in one run: so many at a time, every one a
conversation of its own; then conversations that resend twenty turns and grow. Peers are installed by `--install`.
The load of the machine distorts milliseconds; it hardly distorts what a request costs the gateway's processes in CPU.

`--guard`: what the guard costs a request that is far from its room. The same conversations with a model whose window is
guarded and with one whose compaction is off, request by request in turn; exits with 1 above a millisecond.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from statistics import median, quantiles
from urllib.parse import urlsplit

from benchmarks.gateways import GATEWAYS, UNGUARDED, Gateway, direct, install, installed, serving
from benchmarks.instant import ANSWER, FIRST

AT_ONCE = (1, 16, 64)
REQUESTS = 256
TURNS = 20
WARM_UP = 8
# How often the guard's cost is measured, and what it may be.
RUNS, MOST_MS = 5, 1.0
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
    """One kept connection. It parses as little as possible, so that the client's own work is not measured."""

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
    """Concurrent clients, each with its own conversations. The turns before `turns` are not timed."""
    each = max(2, requests // at_once)
    ready = asyncio.Barrier(at_once + 1)
    tasks = [asyncio.create_task(one_client(gateway, number, each, turns, ready)) for number in range(at_once)]
    await ready.wait()
    cpu = gateway.cpu_seconds()
    times = [time for task in tasks for time in await task]
    return Measured(times=times, cpu_ms=1000 * (gateway.cpu_seconds() - cpu) / len(times))


async def one_client(gateway: Gateway, number: int, requests: int, turns: int, ready: asyncio.Barrier) -> list[Times]:
    """Conversations of one request each; with `turns`, one that starts with so many turns and grows with each
    request."""
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


def guard_costs(runs: int, requests: int) -> bool:
    """Is the median of the runs at most `MOST_MS`?"""
    with ExitStack() as opened:
        guarded = opened.enter_context(GATEWAYS["dominds"](opened.enter_context(serving("benchmarks.instant"))))
        pair = (replace(guarded, model=UNGUARDED), guarded)
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; p50 of the first word, ms")
        return max(compared(pair, turns, runs, requests) for turns in (0, TURNS)) <= MOST_MS


def compared(pair: Sequence[Gateway], turns: int, runs: int, requests: int) -> float:
    """What the second adds to the first, in milliseconds."""
    print(
        f"\n{f'{turns} turns resent' if turns else 'new conversations'}\n{'unguarded':>12}{'guarded':>10}{'added':>10}"
    )
    added = []
    for _run in range(runs):
        plain, guarded = (1000 * median(times) for times in asyncio.run(in_turn(pair, turns, requests)))
        added.append(guarded - plain)
        print(f"{plain:12.2f}{guarded:10.2f}{guarded - plain:+10.2f}", flush=True)
    print(f"median of {runs} runs: {median(added):+.2f} ms")
    return median(added)


async def in_turn(gateways: Sequence[Gateway], turns: int, requests: int) -> list[list[float]]:
    """Seconds to the first word for each gateway. They take turns, request by request, so that other load affects both.
    A conversation starts with so many turns and grows to twice as many."""
    async with AsyncExitStack() as opened:
        clients = [await opened.enter_async_context(connected(gateway)) for gateway in gateways]
        times: list[list[float]] = [[] for _client in clients]
        messages: list[Message] = []
        for request in range(-WARM_UP, requests):
            told = f"{os.getpid()}-{time.monotonic_ns()}"
            if (turns and request % turns == 0) or not messages:
                messages = [message for turn in range(turns) for message in said(f"{told}, turn {turn}")]
                for client in clients if turns else ():
                    await client.ask(messages[:-1])
            asked = said(f"{told}, request {request}")
            messages = [*messages, *asked] if turns else asked
            for client, taken in zip(clients, times, strict=True):
                taken.append((await client.ask(messages[:-1])).first)
        return [taken[WARM_UP:] for taken in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--install", action="store_true", help="install the peers first")
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--at-once", type=int, nargs="+", default=AT_ONCE)
    parser.add_argument("--only", nargs="+", choices=sorted(GATEWAYS), default=sorted(GATEWAYS))
    parser.add_argument("--guard", action="store_true", help="measure what the guard adds, and nothing else")
    parser.add_argument("--runs", type=int, default=RUNS, help="of --guard")
    wanted = parser.parse_args()
    if wanted.guard:
        sys.exit(not guard_costs(wanted.runs, wanted.requests))
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
