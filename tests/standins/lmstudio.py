"""A stand-in for LM Studio: its lists of models, its chat, its errors, and its way of cutting without a word.

`python -m tests.standins.lmstudio --port 1234 --context 4096` is a program. `--front http://127.0.0.1:8080` lets a
real llama.cpp server answer and count, `--cut-middle` drops what does not fit as LM Studio does by default; without
it such a request is refused. What it was asked, and how large, is at `/standin`; a POST there loads or unloads.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.standins.serving import run
from tests.standins.tokens import Messages, count, count_at, without_middle

KEEP = (
    "Trying to keep the first {tokens} tokens when context the overflows. However, the model is loaded with context "
    "length of only {context} tokens, which is not enough. Try to load the model with a larger context length, or "
    "provide a shorter input"
)
# How many requests are remembered whole; all of them are counted.
REMEMBERED = 500


@dataclass
class LMStudioStandin:
    """`version` 0 knows the older list only. `words` and `delay` make long and slow answers; `reply` answers what it
    has read."""

    context: int = 4096
    model: str = "tiny"
    maximum: int = 131_072
    loaded: bool = True
    version: int = 1
    cut_middle: bool = False
    front: str = ""
    key: str = ""
    answer: str = ""
    reply: Callable[[dict[str, Any]], str] | None = None
    words: int = 0
    delay: float = 0.0
    sizes: list[int] = field(default_factory=list)
    cuts: int = 0
    loads: int = 0
    refused: int = 0
    asked: list[dict[str, Any]] = field(default_factory=list)

    @property
    def largest(self) -> int:
        return max(self.sizes, default=0)

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/chat/completions", self.chat, methods=["POST"]),
                Route("/v1/models", self.list_like_openai),
                Route("/api/v1/models", self.list_v1),
                Route("/api/v0/models", self.list_v0),
                Route("/api/v1/models/load", self.load, methods=["POST"]),
                Route("/standin", self.tell),
                Route("/standin", self.change, methods=["POST"]),
                Route("/{path:path}", self.unexpected, methods=["GET", "POST"]),
            ]
        )

    async def list_like_openai(self, request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": self.model, "object": "model", "owned_by": "me"}]})

    async def list_v1(self, request: Request) -> Response:
        if self.version < 1:
            return await self.unexpected(request)
        if refusal := self._refuse_stranger(request):
            return refusal
        instance = {"id": self.model, "config": {"context_length": self.context, "eval_batch_size": 512}}
        model = {
            "type": "llm",
            "publisher": "nobody",
            "key": self.model,
            "architecture": "llama",
            "quantization": {"name": "Q4_K_M", "bits_per_weight": 4},
            "params_string": "135M",
            "loaded_instances": [instance] if self.loaded else [],
            "max_context_length": self.maximum,
            "format": "gguf",
        }
        embedder = {"type": "embedding", "key": "text-embedding-nomic", "loaded_instances": []}
        return JSONResponse({"models": [model, embedder]})

    async def list_v0(self, request: Request) -> Response:
        if refusal := self._refuse_stranger(request):
            return refusal
        state = {"state": "loaded", "loaded_context_length": self.context} if self.loaded else {"state": "not-loaded"}
        model = {"id": self.model, "object": "model", "type": "llm", "arch": "llama", "quantization": "Q4_K_M"}
        return JSONResponse({"object": "list", "data": [model | state | {"max_context_length": self.maximum}]})

    async def load(self, request: Request) -> Response:
        body = await request.json()
        self.loads += 1
        await asyncio.sleep(self.delay)
        self.loaded, self.context = True, body.get("context_length", self.context)
        return JSONResponse({"type": "llm", "instance_id": self.model, "status": "loaded", "load_time_seconds": 0.1})

    async def chat(self, request: Request) -> Response:
        body = await request.json()
        refusal = self._refuse_stranger(request) or self._refuse_model(body)
        if refusal:
            return refusal
        tools = body.get("tools") or ()
        size = await self._count(body["messages"], tools)
        self._remember(body, size)
        if size > self.context:
            kept = await without_middle(body["messages"], self._fits(tools)) if self.cut_middle else None
            if kept is None:
                return self._refuse_size(size)
            self.cuts += 1
            body, size = body | {"messages": kept}, await self._count(kept, tools)
        return await self._forward(body, size) if self.front else self._stream(body, size)

    async def tell(self, request: Request) -> Response:
        """What was asked so far. `?asked=3` adds the last three requests."""
        last = int(request.query_params.get("asked", 0))
        told = {"requests": len(self.sizes), "largest": self.largest, "cuts": self.cuts, "refused": self.refused}
        told |= {"context": self.context, "loaded": self.loaded, "sizes": self.sizes}
        return JSONResponse(told | ({"asked": self.asked[-last:]} if last else {}))

    async def change(self, request: Request) -> Response:
        """Load with another window, or unload, as somebody may do in LM Studio at any time."""
        for name, value in (await request.json()).items():
            setattr(self, name, value)
        return await self.tell(request)

    async def unexpected(self, request: Request) -> Response:
        return JSONResponse({"error": f"Unexpected endpoint or method. ({request.method} {request.url.path})"})

    async def _count(self, messages: Messages, tools: Any) -> int:
        return await count_at(self.front, messages, tools) if self.front else count(messages, tools)

    def _fits(self, tools: Any) -> Any:
        async def fits(messages: Messages) -> bool:
            return await self._count(messages, tools) <= self.context

        return fits

    def _remember(self, body: dict[str, Any], size: int) -> None:
        self.sizes.append(size)
        self.asked.append(body)
        del self.asked[:-REMEMBERED]

    def _refuse_stranger(self, request: Request) -> Response | None:
        if not self.key or request.headers.get("authorization") == f"Bearer {self.key}":
            return None
        error = {"message": "Invalid API token.", "type": "invalid_request_error", "code": "invalid_api_key"}
        return JSONResponse({"error": error}, status_code=401)

    def _refuse_model(self, body: dict[str, Any]) -> Response | None:
        if self.loaded and body.get("model") == self.model:
            return None
        error = {"message": f"Model {body.get('model')!r} is not loaded.", "type": "invalid_request_error"}
        return JSONResponse({"error": error | {"param": "model", "code": "model_not_found"}}, status_code=404)

    def _refuse_size(self, size: int) -> Response:
        """The error is a bare text."""
        self.refused += 1
        return JSONResponse({"error": KEEP.format(tokens=size, context=self.context)}, status_code=400)

    def _stream(self, body: dict[str, Any], size: int) -> Response:
        return StreamingResponse(self._chunks(body, size), media_type="text/event-stream")

    async def _chunks(self, body: dict[str, Any], size: int) -> AsyncIterator[str]:
        whole = self._words(body)
        words = whole[: self.context - size]
        yield _chunk({"role": "assistant", "content": ""})
        for word in words:
            await asyncio.sleep(self.delay)
            yield _chunk({"content": word})
        yield _chunk({}, "stop" if words == whole else "length")
        if (body.get("stream_options") or {}).get("include_usage"):
            usage = {"prompt_tokens": size, "completion_tokens": len(words), "total_tokens": size + len(words)}
            yield f"data: {json.dumps({'object': 'chat.completion.chunk', 'choices': [], 'usage': usage})}\n\n"
        yield "data: [DONE]\n\n"

    def _words(self, body: dict[str, Any]) -> list[str]:
        last = str(body["messages"][-1].get("content") or "")
        if self.reply:
            return re.findall(r"\s*\S+", self.reply(body))
        words = (self.answer or f"You said: {' '.join(last.split()[:12])}").split()
        words = [words[at % len(words)] for at in range(self.words)] if self.words else words
        return [f"{' ' if at else ''}{word}" for at, word in enumerate(words)]

    async def _forward(self, body: dict[str, Any], size: int) -> Response:
        """The real server answers, with no more room than this window leaves."""
        room = max(1, self.context - size)
        body |= {"max_tokens": min(body.get("max_tokens") or room, room)}
        client = httpx.AsyncClient(base_url=self.front, timeout=300)
        asked = client.build_request("POST", "/v1/chat/completions", json=body)
        answer = await client.send(asked, stream=True)
        kind = answer.headers.get("content-type")
        return StreamingResponse(_relay(client, answer), answer.status_code, media_type=kind)


async def _relay(client: httpx.AsyncClient, answer: httpx.Response) -> AsyncIterator[bytes]:
    """Whoever leaves early leaves the real server early too: it then stops."""
    try:
        async for piece in answer.aiter_raw():
            yield piece
    finally:
        await answer.aclose()
        await client.aclose()


def _chunk(delta: dict[str, Any], finish: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return f"data: {json.dumps({'id': 'c1', 'object': 'chat.completion.chunk', 'choices': [choice]})}\n\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--context", type=int, default=4096, help="the window that the model is loaded with")
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--front", default="", help="a llama.cpp server that answers and counts")
    parser.add_argument("--cut-middle", action="store_true", help="drop what does not fit without a word")
    parser.add_argument("--words", type=int, default=0, help="length of each answer, where no server is in front")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each word")
    options = vars(parser.parse_args())
    port = options.pop("port")
    run(LMStudioStandin(**options).app(), port=port, name="The stand-in LM Studio")


if __name__ == "__main__":
    main()
