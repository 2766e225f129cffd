"""A proxy of Dominds' web server and HTTP client alone: the least that `/v1` could add.

It passes every byte on to DOMINDS_BENCH_UPSTREAM, without keys, models or a database.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import httpx2

HEAD = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]}
upstream = httpx2.AsyncClient(base_url=os.environ["DOMINDS_BENCH_UPSTREAM"])


async def application(
    scope: Mapping[str, Any],
    receive: Callable[[], Awaitable[dict[str, Any]]],
    send: Callable[[Mapping[str, Any]], Awaitable[None]],
) -> None:
    """ASGI, for `daphne benchmarks.passed_on:application`."""
    asked = await _body(receive)
    async with upstream.stream("POST", "/chat/completions", content=asked) as answer:
        await send(HEAD)
        async for said in answer.aiter_bytes():
            await send({"type": "http.response.body", "body": said, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _body(receive: Callable[[], Awaitable[dict[str, Any]]]) -> bytes:
    body, more = b"", True
    while more:
        event = await receive()
        body, more = body + event.get("body", b""), event.get("more_body", False)
    return body
