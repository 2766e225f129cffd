"""An OpenAI-compatible server whose chunks carry their number and the time when they were sent.

`python -m benchmarks.upstream PORT [CHUNKS SECONDS]`: so many chunks an answer, and the time between two.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from functools import partial

CHUNKS = 300
EVERY_SECONDS = 0.02
# Written into the text, so that a client or browser that sees a chunk knows when it was sent.
STAMP = re.compile(r"t(\d+)=(\d+)")


def chunk(delta: dict[str, str], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "stamped", "choices": [choice]}
    return f"data: {json.dumps(body)}\n\n".encode()


def usage(chunks: int) -> bytes:
    counts = {"prompt_tokens": 40, "completion_tokens": chunks, "total_tokens": 40 + chunks}
    body = {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "stamped",
        "choices": [],
        "usage": counts,
    }
    return f"data: {json.dumps(body)}\n\n".encode()


async def speak(writer: asyncio.StreamWriter, chunks: int, every: float) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
    writer.write(chunk({"role": "assistant", "content": ""}))
    started = time.perf_counter()
    for number in range(chunks):
        await asyncio.sleep(max(0.0, started + number * every - time.perf_counter()))
        # A paragraph now and then, as prose has: finished blocks are rendered once.
        gap = "\n\n" if number % 40 == 39 else " "
        writer.write(chunk({"content": f"t{number}={time.time_ns() // 1000}{gap}"}))
        await writer.drain()
    writer.write(chunk({}, "stop") + usage(chunks) + b"data: [DONE]\n\n")
    await writer.drain()


async def answer(chunks: int, every: float, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        if length:
            await reader.readexactly(int(length[1]))
        await speak(writer, chunks, every)
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    writer.close()


async def serve(port: int, chunks: int = CHUNKS, every: float = EVERY_SECONDS) -> None:
    server = await asyncio.start_server(partial(answer, chunks, every), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    port, chunks, every = [*sys.argv[1:], str(CHUNKS), str(EVERY_SECONDS)][:3]
    asyncio.run(serve(int(port), int(chunks), float(every)))
