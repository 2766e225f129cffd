"""What one request of a client costs the process that answers it, and one turn of a page the worker that drives it:
`python -m benchmarks.request_cost [--profile FILE]`.

The whole ASGI application in this process, in front of a model server on loopback that answers at once. CPU of all
threads of this process, statements and trips to a thread that speaks to the database; a clock would say more of the
machine. New conversations, one that resends twenty turns and grows, and new dialogs of a page; SQLite in a file.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import os
import pstats
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from statistics import median
from typing import Any

from benchmarks.api_latency import TURNS, Message, said
from benchmarks.gateways import ROWS, serving
from benchmarks.in_process import prepare

ROUNDS, EACH, WARM_UP = 5, 20, 10
Asking = Callable[[Sequence[Message]], Any]


def asking(application: Any, secret: str) -> Asking:
    """One request through the application, as a server would put it."""

    async def ask(messages: Sequence[Message]) -> bytes:
        body = json.dumps({"model": "bench/m", "stream": True, "messages": messages}).encode()
        sent: list[bytes] = []
        told = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def receive() -> dict[str, Any]:
            if (one := next(told, None)) is not None:
                return one
            await asyncio.Event().wait()
            raise AssertionError

        async def send(event: dict[str, Any]) -> None:
            sent.append(event.get("body", b""))

        await application(scope(secret, body), receive, send)
        answer = b"".join(sent)
        assert answer.endswith(b"data: [DONE]\n\n"), answer
        return answer

    return ask


def scope(secret: str, body: bytes) -> dict[str, Any]:
    headers = [
        (b"host", b"localhost"),
        (b"content-type", b"application/json"),
        (b"authorization", f"Bearer {secret}".encode()),
        (b"content-length", str(len(body)).encode()),
    ]
    path = "/v1/chat/completions"
    return {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": headers,
        "http_version": "1.1",
        "scheme": "http",
        "client": ("127.0.0.1", 5),
        "server": ("127.0.0.1", 80),
        "root_path": "",
        "asgi": {"version": "3.0"},
    }


async def conversations(ask: Asking, *, turns: int, requests: int, around: Callable[[], Any]) -> None:
    """So many requests, each inside `around()`; the turns before `turns` are not."""
    told = time.monotonic_ns()
    # Answers of their own: one that ours are equal to would be taken for a conversation that was going on.
    turn = [said(f"{told}, turn {number}") for number in range(turns)]
    messages = [{**one, "content": f"{one['content']} ({told})"} for pair in turn for one in pair]
    if turns:
        await ask(messages[:-1])
    for request in range(requests):
        asked = said(f"{told}, request {request}")
        messages = [*messages, *asked] if turns else asked
        with around():
            await ask(messages[:-1])
            # Includes the events for browsers afterwards.
            await asyncio.sleep(0.07)


async def turns_of_pages(*, requests: int, around: Callable[[], Any]) -> None:
    """So many dialogs with one message, each answered inside `around()`, as a worker does."""
    from django.contrib.auth.models import User

    from dialogs.common.broadcast import all_sent
    from dialogs.common.threads import in_db, own_threads
    from dialogs.driver.run import drive
    from dialogs.models import Agent
    from dialogs.pages.writes import create_dialog
    from dialogs.turns.writes.messages import post_message

    def asked() -> Any:
        dialog = create_dialog(owner=User.objects.earliest("pk"), agent=Agent.objects.get(slug="bench"))
        return post_message(dialog=dialog, content="Hello").dialog_id

    with own_threads():
        for _request in range(requests):
            dialog_id = await in_db(asked)()
            await all_sent()
            with around():
                await drive(dialog_id)
                await all_sent()


@contextmanager
def counting(found: Counter[str]) -> Iterator[None]:
    """Statements, and trips to a thread of the database."""
    from django.db.backends.utils import CursorWrapper

    from dialogs.common import threads

    def noted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            found[name] += 1
            return real(*args, **kwargs)

        return call

    execute, connected = CursorWrapper.execute, threads._connected
    CursorWrapper.execute = noted("statements", execute)  # type: ignore[method-assign]
    threads._connected = noted("trips", connected)  # type: ignore[assignment]
    try:
        yield
    finally:
        CursorWrapper.execute = execute  # type: ignore[method-assign]
        threads._connected = connected


@contextmanager
def profiling(into: list[cProfile.Profile]) -> Iterator[None]:
    """Of the event loop, and of each trip."""
    from dialogs.common import threads

    def profiled(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            into.append(cProfile.Profile(time.thread_time))
            return into[-1].runcall(connected(function), *args, **kwargs)

        return call

    connected, loop = threads._connected, cProfile.Profile(time.thread_time)
    into.append(loop)
    threads._connected = profiled  # type: ignore[assignment]
    loop.enable()
    try:
        yield
    finally:
        loop.disable()
        threads._connected = connected


@contextmanager
def cpu(into: list[float]) -> Iterator[None]:
    before = time.process_time()
    yield
    into.append(1000 * (time.process_time() - before))


def measure(name: str, work: Callable[..., Any], runner: asyncio.Runner, *, path: str | None) -> None:
    def run(**how: Any) -> None:
        runner.run(work(**how))

    rounds, counted, profiles = [], Counter[str](), list[cProfile.Profile]()
    run(requests=WARM_UP, around=nullcontext)
    for _round in range(ROUNDS):
        taken: list[float] = []
        run(requests=EACH, around=lambda taken=taken: cpu(taken))
        rounds.append(median(taken))
    run(requests=EACH, around=lambda: counting(counted))
    run(requests=EACH, around=lambda: profiling(profiles))
    stats = pstats.Stats(profiles[0])
    for one in profiles[1:]:
        stats.add(one)
    if path:
        stats.dump_stats(f"{path}-{name.replace(' ', '-')}")
    print(
        f"{name:18}"
        f"{min(rounds):10.1f}{median(rounds):8.1f}{stats.total_calls / EACH / 1000:14.1f}"  # type: ignore[attr-defined]
        f"{counted['statements'] / EACH:12.1f}{counted['trips'] / EACH:7.1f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--profile", metavar="FILE", help="keep where it goes, for pstats, in FILE-new-conversation and so on"
    )
    wanted = parser.parse_args()
    prepare()
    from django.contrib.auth.models import User

    from dialogs.api.writes.api_keys import create_key
    from dialogs.models import LLM, Agent
    from dominds.asgi import application
    from dominds.event_loop import new_event_loop

    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; medians of {EACH} requests, {ROUNDS} times")
    print(f"{'':18}{'CPU ms: least, median':>18}{'1,000 calls':>11}{'statements':>12}{'trips':>7}")
    with serving("benchmarks.instant") as upstream, asyncio.Runner(loop_factory=new_event_loop) as runner:
        exec(ROWS.replace("{upstream}", upstream).replace("{window}", "None"), {})
        _key, secret = create_key(owner=User.objects.get(), name="bench")
        ask = asking(application, secret)
        for name, turns in (("new conversation", 0), (f"{TURNS} turns resent", TURNS)):
            measure(name, partial(conversations, ask, turns=turns), runner, path=wanted.profile)
        Agent.objects.create(name="Bench", slug="bench", llm=LLM.objects.get(model_id="m"))
        measure("turn of a page", turns_of_pages, runner, path=wanted.profile)


if __name__ == "__main__":
    main()
