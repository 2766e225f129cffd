"""Ollama, by its native API: OpenAI's cannot ask for a window, and drops old messages without a word.

Every request says how large a window it wants and forbids dropping: what does not fit is then an error.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from typing import Any, ClassVar

import httpx2
import openai

from dialogs.providers.addresses import native_root
from dialogs.providers.base import (
    BadAnswer,
    ChatRequest,
    ContextOverflow,
    ModelFacts,
    ModelNotFound,
    ProviderError,
    ProviderSettings,
    StreamEvent,
)
from dialogs.providers.errors import translated
from dialogs.providers.events import lines_of
from dialogs.providers.http import connecting, json_of, refuse_error, refuse_other_than_stream
from dialogs.providers.ollama_facts import facts_of_model, models_in, windows_in
from dialogs.providers.ollama_request import wire_request
from dialogs.providers.ollama_stream import OllamaStream
from dialogs.providers.wire import as_mapping


class Ollama:
    kind: ClassVar[str] = "ollama"

    def __init__(self, settings: ProviderSettings) -> None:
        self.settings = settings
        self._client = httpx2.AsyncClient(
            base_url=native_root(settings.base_url),
            # Ollama itself wants no key; a proxy before it may.
            headers={"authorization": f"Bearer {settings.api_key}"} if settings.api_key else {},
            **connecting(settings),
        )

    async def stream(self, request: ChatRequest) -> AsyncGenerator[StreamEvent, None]:
        answer = OllamaStream()
        with translated(openai, self.settings):
            try:
                async with self._client.stream("POST", "/api/chat", json=wire_request(request)) as response:
                    await refuse_error(response)
                    await refuse_other_than_stream(response)
                    async for line in lines_of(response):
                        for event in answer.add(line.decode()):
                            yield event
            except ContextOverflow as overflow:
                raise await self._with_window(overflow, request) from None
            for event in answer.end():
                yield event

    async def list_models(self) -> tuple[ModelFacts, ...]:
        with translated(openai, self.settings):
            listed = await self._ask("GET", "/api/tags")
            if not isinstance(as_mapping(listed).get("models"), list):
                raise BadAnswer("This is no Ollama: it does not list its models.")
            return models_in(listed, windows=await self._windows())

    async def read_limits(self, model_id: str) -> ModelFacts:
        with translated(openai, self.settings):
            shown = await self._ask("POST", "/api/show", {"model": model_id})
            return facts_of_model(model_id, shown, windows=await self._windows())

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _windows(self) -> Mapping[str, int]:
        """The window of each model that is loaded now. Old versions of Ollama do not say."""
        try:
            return windows_in(await self._ask("GET", "/api/ps"))
        except ModelNotFound:
            return {}

    async def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        response = await self._client.request(method, path, json=body)
        await refuse_error(response)
        return json_of(response)

    async def _with_window(self, overflow: ContextOverflow, request: ChatRequest) -> ContextOverflow:
        """Ollama's words name no number. What is set aside is asked for: it may be less than what was wished."""
        window = overflow.context_window
        with suppress(ProviderError):
            window = window or (await self.read_limits(request.model)).context_length
        window = window or request.context_window
        return ContextOverflow(
            str(overflow), context_window=window, prompt_tokens=overflow.prompt_tokens, status=overflow.status
        )
