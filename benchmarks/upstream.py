"""An OpenAI-compatible server that says when it spoke: every chunk of text carries its number and its moment."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time

CHUNKS = 300
EVERY_SECONDS = 0.02
# Written into the text, so that whoever sees a chunk, client or browser, knows when it left.
STAMP = re.compile(r"t(\d+)=(\d+)")


def chunk(delta: dict[str, str], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "stamped", "choices": [choice]}
    return f"data: {json.dumps(body)}\n\n".encode()


def usage() -> bytes:
    counts = {"prompt_tokens": 40, "completion_tokens": CHUNKS, "total_tokens": 40 + CHUNKS}
    body = {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "stamped",
        "choices": [],
        "usage": counts,
    }
    return f"data: {json.dumps(body)}\n\n".encode()


async def speak(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
    writer.write(chunk({"role": "assistant", "content": ""}))
    started = time.perf_counter()
    for number in range(CHUNKS):
        await asyncio.sleep(max(0.0, started + number * EVERY_SECONDS - time.perf_counter()))
        # A paragraph now and then, as prose has: finished blocks are rendered once.
        gap = "\n\n" if number % 40 == 39 else " "
        writer.write(chunk({"content": f"t{number}={time.time_ns() // 1000}{gap}"}))
        await writer.drain()
    writer.write(chunk({}, "stop") + usage() + b"data: [DONE]\n\n")
    await writer.drain()


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    if length:
        await reader.readexactly(int(length[1]))
    await speak(writer)
    writer.close()


async def serve(port: int) -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
