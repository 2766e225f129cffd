"""An OpenAI-compatible server that answers at once, the same to everybody: `python -m benchmarks.instant PORT`.

It parses nothing and sends its answer in one piece, so that what is measured in front of it is not its own work.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys

WORDS = 20
FIRST = "word0"
ANSWER = " ".join(f"word{number}" for number in range(WORDS)) + " "
LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def event(choices: list[dict[str, object]], **more: object) -> bytes:
    body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices, **more}
    return f"data: {json.dumps(body)}\n\n".encode()


def piece(delta: dict[str, str], finish: str | None = None) -> bytes:
    return event([{"index": 0, "delta": delta, "finish_reason": finish}])


def the_answer() -> bytes:
    usage = {"prompt_tokens": 40, "completion_tokens": WORDS, "total_tokens": 40 + WORDS}
    words = (piece({"content": f"{word} "}) for word in ANSWER.split())
    whole = [piece({"role": "assistant", "content": ""}), *words, piece({}, "stop"), event([], usage=usage)]
    body = b"".join([*whole, b"data: [DONE]\n\n"])
    return HEAD + f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    said = the_answer()
    try:
        while True:
            length = LENGTH.search(await reader.readuntil(b"\r\n\r\n"))
            if length:
                await reader.readexactly(int(length[1]))
            writer.write(said)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def serve(port: int) -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
