"""One small world a kind of provider, so that the contract suite can ask all of them for the same things.

A new kind adds a class here and a line in `WORLDS`; the suite then holds for it too.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Protocol, cast

import pytest

from dialogs.providers.base import (
    ChatMessage,
    ChatRequest,
    MessagesRefused,
    Provider,
    ProviderError,
    ProviderSettings,
    StreamEvent,
    ToolCall,
)
from dialogs.providers.laws import next_shape, shaped, without_calls
from dialogs.providers.registry import make_provider
from dialogs.providers.scripted import Scripted, Step
from tests.dialogs.providers.upstream import Asked, Reply, Upstream, as_json, as_stream, data, named
from tests.standins.templates import TEMPLATES, WITH_TOOLS

KEY = "sk-a-very-secret-key"
MODEL = "small"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a world is asked to answer. `usage` is (prompt, completion); `after` is how it ends."""

    text: tuple[str, ...] = ()
    reasoning: tuple[str, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    usage: tuple[int, int] | None = None
    finish: str = "stop"
    after: str = "whole"
    delay: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """An error answer. `code` is ours; a world words it as its servers do."""

    code: str
    status: int
    message: str = "no"
    retry_after: float | None = None
    window: int | None = None
    prompt: int | None = None


class World(Protocol):
    def provider(self) -> Provider: ...
    def answers(self, answer: Answer) -> None: ...
    def refuses(self, refusal: Refusal) -> None: ...
    def lists(self, windows: Mapping[str, int]) -> None: ...


@dataclass
class Wired:
    """What the worlds with a server share."""

    kind: ClassVar[str] = ""
    # Where the list of models is, and the names of its fields.
    models_path: ClassVar[str] = "/v1/models"
    models_field: ClassVar[str] = "data"
    id_field: ClassVar[str] = "id"
    server: Upstream
    read_timeout: float = 5.0

    def provider(self) -> Provider:
        return make_provider(
            ProviderSettings(
                name="upstream",
                kind=self.kind,
                base_url=self.server.url,
                api_key=KEY,
                connect_timeout=2,
                read_timeout=self.read_timeout,
            )
        )


def chat_chunk(delta: Mapping[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return data({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": MODEL, "choices": [choice]})


def usage_chunk(usage: object) -> bytes:
    return data({"id": "c1", "object": "chat.completion.chunk", "created": 1, "choices": [], "usage": usage})


class OpenAIWorld(Wired):
    kind = "openai"
    path = "/v1/chat/completions"

    def answers(self, answer: Answer) -> None:
        self.server.on(self.path, as_stream(self._chunks(answer), ending=answer.after, delay=answer.delay))

    def refuses(self, refusal: Refusal) -> None:
        headers = {"retry-after": f"{refusal.retry_after:g}"} if refusal.retry_after is not None else {}
        self.server.on(self.path, as_json({"error": self._error(refusal)}, status=refusal.status, headers=headers))

    def lists(self, windows: Mapping[str, int]) -> None:
        entries = [{"id": name, "object": "model", "max_model_len": window} for name, window in windows.items()]
        self.server.on("/v1/models", as_json({"object": "list", "data": entries}))

    def _error(self, refusal: Refusal) -> dict[str, Any]:
        if refusal.window:
            message = f"This model's maximum context length is {refusal.window} tokens. However, your messages "
            message += f"resulted in {refusal.prompt} tokens."
            return {"message": message, "type": "invalid_request_error", "code": "context_length_exceeded"}
        return {"message": refusal.message, "type": "server_error", "param": None, "code": None}

    def _chunks(self, answer: Answer) -> list[bytes]:
        chunks = [chat_chunk({"role": "assistant", "content": ""})]
        chunks += [chat_chunk({"reasoning_content": thought}) for thought in answer.reasoning]
        chunks += [chat_chunk({"content": text}) for text in answer.text]
        for index, call in enumerate(answer.calls):
            begun = {
                "index": index,
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": ""},
            }
            rest = {"index": index, "function": {"arguments": call.arguments}}
            chunks += [chat_chunk({"tool_calls": [begun]}), chat_chunk({"tool_calls": [rest]})]
        if answer.after == "whole":
            chunks += [chat_chunk({}, answer.finish)]
            chunks += [self._usage(answer)] if answer.usage else []
            chunks += [data("[DONE]")]
        return chunks

    def _usage(self, answer: Answer) -> bytes:
        prompt, completion = answer.usage or (0, 0)
        return usage_chunk({"prompt_tokens": prompt, "completion_tokens": completion})


class LlamaCppWorld(OpenAIWorld):
    kind = "llamacpp"

    def lists(self, windows: Mapping[str, int]) -> None:
        entries = [{"id": name, "object": "model", "meta": {"n_ctx_train": 99}} for name in windows]
        self.server.on("/v1/models", as_json({"object": "list", "data": entries}))
        window = next(iter(windows.values()), 0)
        self.server.on("/props", as_json({"default_generation_settings": {"n_ctx": window}}))

    def _error(self, refusal: Refusal) -> dict[str, Any]:
        if refusal.window:
            return {
                "code": 400,
                "message": f"request ({refusal.prompt} tokens) exceeds the available context size "
                f"({refusal.window} tokens), try increasing it",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": refusal.prompt,
                "n_ctx": refusal.window,
            }
        return {"code": refusal.status, "message": refusal.message, "type": "server_error"}


class LMStudioWorld(OpenAIWorld):
    """Errors as bare texts; the windows are in a list of its own."""

    kind = "lmstudio"
    models_path, models_field, id_field = "/api/v1/models", "models", "key"

    def refuses(self, refusal: Refusal) -> None:
        super().refuses(refusal)
        if refusal.window:
            message = f"Cannot truncate prompt with n_keep (15) >= n_ctx ({refusal.window}): "
            message += f"request ({refusal.prompt} tokens)"
            self.server.on(self.path, as_json({"error": message}, status=refusal.status))

    def lists(self, windows: Mapping[str, int]) -> None:
        models = [
            {
                "type": "llm",
                "key": name,
                "loaded_instances": [{"id": name, "config": {"context_length": window}}],
                "max_context_length": 262_144,
            }
            for name, window in windows.items()
        ]
        self.server.on(self.models_path, as_json({self.models_field: models}))


class OllamaWorld(Wired):
    kind = "ollama"
    path = "/api/chat"
    models_path, models_field, id_field = "/api/tags", "models", "name"

    def answers(self, answer: Answer) -> None:
        lines = [line(chunk) for chunk in self._chunks(answer)]
        self.server.on(
            self.path,
            Reply(content_type="application/x-ndjson", pieces=tuple(lines), ending=answer.after, delay=answer.delay),
        )

    def refuses(self, refusal: Refusal) -> None:
        message = refusal.message
        if refusal.window:
            message = "the prompt is longer than the context length currently available to the model; "
            message += f"request ({refusal.prompt} tokens) exceeds the available context size ({refusal.window} tokens)"
        headers = {"retry-after": f"{refusal.retry_after:g}"} if refusal.retry_after is not None else {}
        self.server.on(self.path, as_json({"error": message}, status=refusal.status, headers=headers))

    def lists(self, windows: Mapping[str, int]) -> None:
        self.server.on(self.models_path, as_json({self.models_field: [{"name": name} for name in windows]}))
        loaded = [{"name": name, "context_length": window} for name, window in windows.items()]
        self.server.on("/api/ps", as_json({"models": loaded}))
        unknown = as_json({"error": "model 'other' not found"}, status=404)
        self.server.answer("/api/show", lambda asked: as_json({}) if asked.json["model"] in windows else unknown)

    def _chunks(self, answer: Answer) -> list[Mapping[str, Any]]:
        said = [{"thinking": thought, "content": ""} for thought in answer.reasoning]
        said += [{"content": text} for text in answer.text]
        calls = [{"id": c.id, "function": {"name": c.name, "arguments": json.loads(c.arguments)}} for c in answer.calls]
        messages: list[Mapping[str, Any]] = [*said, *([{"content": "", "tool_calls": calls}] if calls else [])]
        chunks: list[Mapping[str, Any]] = [
            {"model": MODEL, "message": {"role": "assistant", **message}, "done": False} for message in messages
        ]
        if answer.after == "whole":
            counts = dict(zip(("prompt_eval_count", "eval_count"), answer.usage or (), strict=False))
            reason = "length" if answer.finish == "length" else "stop"
            message = {"role": "assistant", "content": ""}
            chunks.append({"model": MODEL, "message": message, "done": True, "done_reason": reason, **counts})
        return chunks


def line(chunk: Mapping[str, Any]) -> bytes:
    """One line of newline-delimited JSON."""
    return json.dumps(chunk).encode() + b"\n"


class AnthropicWorld(Wired):
    kind = "anthropic"
    path = "/v1/messages"

    def answers(self, answer: Answer) -> None:
        self.server.on(self.path, as_stream(self._events(answer), ending=answer.after, delay=answer.delay))

    def refuses(self, refusal: Refusal) -> None:
        message = refusal.message
        if refusal.window:
            message = f"prompt is too long: {refusal.prompt} tokens > {refusal.window} maximum"
        headers = {"retry-after": f"{refusal.retry_after:g}"} if refusal.retry_after is not None else {}
        body = {"type": "error", "error": {"type": "api_error", "message": message}}
        self.server.on(self.path, as_json(body, status=refusal.status, headers=headers))

    def lists(self, windows: Mapping[str, int]) -> None:
        entries = [{"id": name, "type": "model", "max_input_tokens": window} for name, window in windows.items()]
        self.server.on("/v1/models", as_json({"data": entries, "has_more": False}))
        for entry in entries:
            self.server.on(f"/v1/models/{entry['id']}", as_json(entry))

    def _events(self, answer: Answer) -> list[bytes]:
        prompt, completion = answer.usage or (None, None)
        at_start = {"input_tokens": prompt, "output_tokens": 1} if answer.usage else {}
        events = [named("message_start", {"type": "message_start", "message": {"id": "m1", "usage": at_start}})]
        blocks = [({"type": "thinking", "thinking": ""}, "thinking_delta", "thinking", answer.reasoning)]
        blocks += [({"type": "text", "text": ""}, "text_delta", "text", answer.text)]
        blocks += [
            ({"type": "tool_use", "id": c.id, "name": c.name, "input": {}}, "input_json_delta", "partial_json",
             (c.arguments[:3], c.arguments[3:]))
            for c in answer.calls
        ]  # fmt: skip
        for index, (block, delta_type, name, pieces) in enumerate(blocks):
            events += self._block(index, block, [{"type": delta_type, name: piece} for piece in pieces])
        if answer.after == "whole":
            stop = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}[answer.finish]
            usage = {"output_tokens": completion} if answer.usage else None
            events += [self._event("message_delta", delta={"stop_reason": stop}, usage=usage)]
            events += [self._event("message_stop")]
        return events

    def _block(self, index: int, block: Mapping[str, Any], deltas: Sequence[Mapping[str, Any]]) -> list[bytes]:
        return [
            self._event("content_block_start", index=index, content_block=block),
            *(self._event("content_block_delta", index=index, delta=delta) for delta in deltas),
            self._event("content_block_stop", index=index),
        ]

    def _event(self, name: str, **rest: Any) -> bytes:
        return named(name, {"type": name, **rest})


@dataclass
class ScriptedWorld:
    server: Upstream
    read_timeout: float = 5.0
    steps: list[Step] = field(default_factory=list)
    models: list[dict[str, Any]] = field(default_factory=list)

    def provider(self) -> Provider:
        scripted = Scripted.from_steps(*self.steps, models=self.models)
        scripted.settings = ProviderSettings(
            name="scripted", kind="scripted", base_url="memory", read_timeout=self.read_timeout
        )
        return scripted

    def answers(self, answer: Answer) -> None:
        usage = dict(zip(("prompt_tokens", "completion_tokens"), answer.usage, strict=True)) if answer.usage else None
        step = Step(
            text=answer.text,
            reasoning=answer.reasoning,
            tool_calls=answer.calls,
            usage=usage,
            finish=answer.finish,
            delay=answer.delay,
            drop=answer.after in {"cut", "close"},
            hang=answer.after == "hang",
        )
        self.steps = [step]

    def refuses(self, refusal: Refusal) -> None:
        error: dict[str, Any] = {"code": refusal.code, "message": refusal.message, "status": refusal.status}
        if refusal.window:
            error |= {"context_window": refusal.window, "prompt_tokens": refusal.prompt}
        elif refusal.retry_after is not None:
            error["retry_after"] = refusal.retry_after
        self.steps = [Step(error=error)]

    def lists(self, windows: Mapping[str, int]) -> None:
        self.models = [{"id": name, "context_length": window} for name, window in windows.items()]


WORLDS: dict[str, type[OpenAIWorld | OllamaWorld | AnthropicWorld | ScriptedWorld]] = {
    "openai": OpenAIWorld,
    "lmstudio": LMStudioWorld,
    "ollama": OllamaWorld,
    "llamacpp": LlamaCppWorld,
    "anthropic": AnthropicWorld,
    "scripted": ScriptedWorld,
}


@dataclass
class Shaping:
    """A provider as the driver asks it: what is refused for the order of its messages is asked again in the shape that
    the refusal wants, and calls are told in words where there is no place for them."""

    inner: Provider
    template: str
    shape: str = ""

    async def stream(self, asked: ChatRequest) -> AsyncIterator[StreamEvent]:
        said = list(asked.messages) if self.template in WITH_TOOLS else without_calls(list(asked.messages))
        try:
            async with aclosing(self.inner.stream(replace(asked, messages=tuple(shaped(said, self.shape))))) as events:
                async for event in events:
                    yield event
            return
        except MessagesRefused as refused:
            wanted = next_shape(self.shape, str(refused))
            if wanted is None:
                raise
        self.shape = wanted
        async with aclosing(self.stream(asked)) as events:
            async for event in events:
                yield event

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@dataclass
class StrictWorld(OpenAIWorld):
    """A server that puts what it is asked through a published chat template before it answers or refuses."""

    template: str = ""

    def __post_init__(self) -> None:
        self.server.answer(self.path, self._judged)

    def provider(self) -> Provider:
        return cast("Provider", Shaping(super().provider(), self.template))

    def _judged(self, asked: Asked) -> Reply:
        refusal = TEMPLATES[self.template](asked.json["messages"], asked.json.get("tools") or ())
        if refusal:
            return as_json({"error": {"message": refusal, "type": "BadRequestError", "code": 400}}, status=400)
        return self.server.replies[self.path][0]


STRICT_WORLDS: dict[str, Callable[[Upstream], World]] = {
    template: partial(StrictWorld, template=template) for template in TEMPLATES
}


def request(*messages: ChatMessage, **more: Any) -> ChatRequest:
    return ChatRequest(model=MODEL, messages=messages or (ChatMessage(role="user", content="Hello"),), **more)


async def events_of(provider: Provider, asked: ChatRequest | None = None) -> list[StreamEvent]:
    """All events of one answer; the provider is closed as the driver does it."""
    try:
        return [event async for event in provider.stream(asked or request())]
    finally:
        await provider.aclose()


async def error_of(answering: Awaitable[object]) -> ProviderError:
    async with asyncio.timeout(10):
        with pytest.raises(ProviderError) as caught:
            await answering
    return caught.value
