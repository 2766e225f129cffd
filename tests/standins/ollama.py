"""A stand-in for Ollama: models, what is set aside for them, and a chat that drops the oldest unless forbidden.

`python -m tests.standins.ollama --port 11434` is a program. What it was asked, and how large, is at `/standin`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.standins.serving import run
from tests.standins.tokens import Messages, count, without_oldest

TOO_LONG = (
    "the prompt is longer than the context length currently available to the model; shorten the prompt, adjust the "
    "context length in settings, or use a model with a longer context length"
)


@dataclass
class OllamaStandin:
    """`context` is what it sets aside when nobody asks for more; `allocated` what is set aside now, 0 for nothing."""

    context: int = 4096
    model: str = "tiny:latest"
    maximum: int = 131_072
    allocated: int = 0
    answer: str = "Hello there."
    sizes: list[int] = field(default_factory=list)
    dropped: int = 0
    refused: int = 0
    asked: list[dict[str, Any]] = field(default_factory=list)

    @property
    def largest(self) -> int:
        return max(self.sizes, default=0)

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/api/version", self.version),
                Route("/v1/models", self.listed),
                Route("/api/tags", self.tags),
                Route("/api/ps", self.ps),
                Route("/api/show", self.show, methods=["POST"]),
                Route("/api/chat", self.chat, methods=["POST"]),
                Route("/standin", self.tell),
            ]
        )

    async def version(self, request: Request) -> Response:
        return JSONResponse({"version": "0.12.6"})

    async def listed(self, request: Request) -> Response:
        """OpenAI's list: no window."""
        return JSONResponse({"object": "list", "data": [{"id": self.model, "object": "model", "owned_by": "library"}]})

    async def tags(self, request: Request) -> Response:
        details = {"family": "llama", "parameter_size": "135M", "quantization_level": "Q4_K_M"}
        return JSONResponse({"models": [{"name": self.model, "model": self.model, "details": details}]})

    async def ps(self, request: Request) -> Response:
        loaded = [{"name": self.model, "model": self.model, "context_length": self.allocated}]
        return JSONResponse({"models": loaded if self.allocated else []})

    async def show(self, request: Request) -> Response:
        if refusal := self._refuse_model(await request.json()):
            return refusal
        info = {"general.architecture": "llama", "llama.context_length": self.maximum}
        return JSONResponse({"details": {"family": "llama"}, "model_info": info, "parameters": "stop  <end>"})

    async def chat(self, request: Request) -> Response:
        body = await request.json()
        if refusal := self._refuse_model(body):
            return refusal
        self.allocated = min((body.get("options") or {}).get("num_ctx") or self.context, self.maximum)
        messages: Messages = body["messages"]
        self.sizes.append(count(messages, body.get("tools") or ()))
        self.asked.append(body)
        if self.sizes[-1] > self.allocated:
            kept = await without_oldest(messages, self._fits) if body.get("truncate", True) else None
            if kept is None:
                self.refused += 1
                return JSONResponse({"error": TOO_LONG}, status_code=400)
            self.dropped += 1
            messages = kept
        return StreamingResponse(self._lines(count(messages)), media_type="application/x-ndjson")

    async def tell(self, request: Request) -> Response:
        told = {"requests": len(self.sizes), "largest": self.largest, "dropped": self.dropped, "refused": self.refused}
        return JSONResponse(told | {"allocated": self.allocated})

    async def _fits(self, messages: Messages) -> bool:
        return count(messages) <= self.allocated

    def _refuse_model(self, body: dict[str, Any]) -> Response | None:
        if body.get("model") in {self.model, self.model.removesuffix(":latest")}:
            return None
        return JSONResponse({"error": f"model '{body.get('model')}' not found"}, status_code=404)

    async def _lines(self, size: int) -> AsyncIterator[str]:
        words = self.answer.split(" ")
        for at, word in enumerate(words):
            yield _line({"content": f"{' ' if at else ''}{word}"}, done=False)
        counts = {"done_reason": "stop", "prompt_eval_count": size, "eval_count": len(words)}
        yield _line({"content": ""}, done=True, **counts)


def _line(message: dict[str, Any], **more: Any) -> str:
    return json.dumps({"model": "tiny", "message": {"role": "assistant", **message}, **more}) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--context", type=int, default=4096, help="the window when nobody asks for one")
    options = parser.parse_args()
    run(OllamaStandin(context=options.context).app(), port=options.port, name="The stand-in Ollama")


if __name__ == "__main__":
    main()
