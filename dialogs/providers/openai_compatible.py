"""All services with OpenAI's chat completions API. Lists are read with the official SDK, answers by plain HTTP.

The SDK's retries are off: the driver retries. `errors.py` translates errors, `chat_stream.py` interprets chunks.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from typing import Any, ClassVar

import httpx2
import openai

from dialogs.providers.addresses import is_openai, openai_base
from dialogs.providers.base import ChatMessage, ChatRequest, ModelFacts, ModelNotFound, ProviderSettings, StreamEvent
from dialogs.providers.chat_stream import ChatStream
from dialogs.providers.errors import from_answer, is_full, translated
from dialogs.providers.http import (
    as_event,
    connecting,
    events_of,
    joined,
    json_of,
    refuse_error,
    refuse_other_than_stream,
    timeouts,
)
from dialogs.providers.options import OF_OPENAI, OF_OTHERS, OF_TOOLS, chosen, written_arguments
from dialogs.providers.tokenizing import LLAMACPP, VLLM, CannotCount, Sizes, measure
from dialogs.providers.usage import facts_in

NO_KEY = "none"


class OpenAICompatible:
    kind: ClassVar[str] = "openai"

    def __init__(self, settings: ProviderSettings) -> None:
        self.settings = settings
        http = openai.DefaultAsyncHttpxClient(**connecting(settings))
        self._client = openai.AsyncOpenAI(
            base_url=self.base(settings.base_url),
            # An empty key makes an invalid header; a server without keys ignores this word.
            api_key=settings.api_key or NO_KEY,
            # Set here, so that the SDK does not send values of the environment to another company's server.
            admin_api_key="",
            organization="",
            project="",
            max_retries=0,
            http_client=http,
            _enforce_credentials=False,
        )
        self._http, self._url = http, httpx2.URL(f"{self._client.base_url}chat/completions")
        self._headers = httpx2.Headers(
            {
                "accept": "application/json",
                "user-agent": self._client.user_agent,
                "authorization": f"Bearer {self._client.api_key}",
            }
        )
        self._patience = {"timeout": timeouts(settings).as_dict()}

    @staticmethod
    def base(base_url: str) -> str:
        """The base URL to which the SDK appends its paths."""
        return openai_base(base_url)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[StreamEvent, None]:
        answer = ChatStream()
        with translated(openai, self.settings):
            async with aclosing(await self._open(request)) as response:
                await refuse_error(response)
                await refuse_other_than_stream(response)
                async for sent in events_of(response):
                    for event in joined(_read(answer, sent)):
                        yield event
            for event in answer.end():
                yield event

    async def list_models(self) -> tuple[ModelFacts, ...]:
        with translated(openai, self.settings):
            return facts_in(await self._get("/models"))

    async def read_limits(self, model_id: str) -> ModelFacts:
        for facts in await self.list_models():
            if facts.model_id == model_id:
                return facts
        raise ModelNotFound(f"The server does not list a model called {model_id!r}.")

    @classmethod
    def count_tokens(cls, settings: ProviderSettings, texts: Sequence[str], model: str, *, seconds: float) -> Sizes:
        """Count as vLLM does, else as llama.cpp: that too may be connected as an OpenAI-compatible server."""
        if is_openai(settings.base_url):
            raise CannotCount("OpenAI has no path for it.")
        try:
            return measure(VLLM, settings, texts, model, seconds=seconds)
        except CannotCount:
            return measure(LLAMACPP, settings, texts, model, seconds=seconds)

    async def aclose(self) -> None:
        await self._client.close()

    async def _open(self, request: ChatRequest) -> httpx2.Response:
        body = wire_request(request, of_openai=is_openai(self.settings.base_url))
        response = await self._send(body)
        # Servers that report usage unasked refuse to be asked.
        if response.status_code in {400, 422} and b"stream_options" in await response.aread():
            response = await self._send({name: value for name, value in body.items() if name != "stream_options"})
        return response

    async def _send(self, body: dict[str, Any]) -> httpx2.Response:
        """Send by our own HTTP client. The SDK makes address and headers anew for each request, in as many steps as
        sending takes."""
        request = httpx2.Request("POST", self._url, headers=self._headers, json=body, extensions=self._patience)
        return await self._http.send(request, stream=True)

    async def _get(self, path: str, query: dict[str, object] | None = None) -> Any:
        """A JSON body, read by ourselves: the SDK would pass an HTML page on as a list of models."""
        options: openai._types.RequestOptions = {"params": query} if query else {}
        return json_of(await self._client.get(path, cast_to=httpx2.Response, options=options))


def _read(answer: ChatStream, sent: Iterator[Any]) -> Iterator[StreamEvent]:
    for one in sent:
        chunk = as_event(one)
        if chunk.get("error") and answer.begun and is_full(chunk):
            answer.reason = "length"
        elif chunk.get("error"):
            raise from_answer(None, chunk)
        yield from answer.add(chunk)


def wire_request(request: ChatRequest, *, of_openai: bool = False) -> dict[str, Any]:
    """`of_openai` is for OpenAI's own service, which has renamed one field and refuses what it does not know."""
    body: dict[str, Any] = {
        "model": request.model,
        "stream": True,
        "messages": [wire_message(message) for message in request.messages],
    }
    if request.max_output_tokens:
        body["max_completion_tokens" if of_openai else "max_tokens"] = request.max_output_tokens
    body["stream_options"] = {"include_usage": True}
    if request.tools:
        # Servers refuse `tool_choice` in a request without tools.
        body |= {"tools": list(request.tools)} | chosen(request.options, OF_TOOLS)
    if request.continues and not of_openai:
        # vLLM and others need this flag; llama.cpp and others do so without it.
        body |= {"continue_final_message": True, "add_generation_prompt": False}
    return body | chosen(request.options, OF_OPENAI if of_openai else OF_OTHERS)


def wire_message(message: ChatMessage) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": message.role, "content": list(message.parts) or message.content}
    if message.name:
        wire["name"] = message.name
    if message.tool_calls:
        # Null, not empty: some servers refuse an empty text beside calls.
        wire["content"] = wire["content"] or None
        wire["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": written_arguments(call)}}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        wire["tool_call_id"] = message.tool_call_id
    return wire
