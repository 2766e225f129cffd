"""Clients of Python's world: OpenAI's own, and LangChain's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import openai
from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage
from langchain_openai import ChatOpenAI
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from tests.clients.client import Answer, Wish

PATIENCE_SECONDS = 60


def tool_named(name: str) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}}
    return {"type": "function", "function": {"name": name, "description": "Tells.", "parameters": parameters}}


def error_of(error: openai.APIError) -> dict[str, Any]:
    return {"kind": type(error).__name__, "status": getattr(error, "status_code", None), "code": error.code}


@dataclass(frozen=True)
class OpenAIClient:
    url: str
    key: str

    def open(self) -> openai.OpenAI:
        return openai.OpenAI(base_url=self.url, api_key=self.key, max_retries=0, timeout=PATIENCE_SECONDS)

    def ask(self, wish: Wish) -> Answer:
        answer, messages = Answer(), list(wish.messages)
        with self.open() as client:
            try:
                while message := self._asked(client, wish, messages, answer):
                    # As their guide does it: the message object goes back as it is.
                    messages += [message, *_results(message, wish)]
            except openai.APIError as error:
                answer.error = error_of(error)
        return answer

    def _asked(self, client: openai.OpenAI, wish: Wish, messages: list[Any], answer: Answer) -> Any:
        """The message, where it has calls to answer."""
        more = {"tools": [tool_named(name) for name in wish.results]} if wish.results else {}
        request = {"model": wish.model, "messages": messages, "extra_headers": wish.headers, **more}
        if wish.stream:
            return self._streamed(client, request, wish, answer)
        completion: ChatCompletion = client.chat.completions.create(**request)
        choice = completion.choices[0]
        answer.text, answer.finish = choice.message.content or "", choice.finish_reason
        answer.prompt_tokens = completion.usage.prompt_tokens if completion.usage else None
        calls = choice.message.tool_calls or []
        answer.calls += [call.function.name + call.function.arguments for call in calls]
        return choice.message if calls else None

    def _streamed(self, client: openai.OpenAI, request: dict[str, Any], wish: Wish, answer: Answer) -> None:
        options = {"stream": True, "stream_options": {"include_usage": True}}
        with client.chat.completions.create(**request, **options) as chunks:
            for chunk in chunks:
                _hear(chunk, answer)
                if wish.leave_at and wish.leave_at in answer.text:
                    return


def _results(message: Any, wish: Wish) -> Iterator[dict[str, Any]]:
    for call in message.tool_calls:
        yield {"role": "tool", "tool_call_id": call.id, "content": wish.results[call.function.name]}


def _hear(chunk: ChatCompletionChunk, answer: Answer) -> None:
    if chunk.usage:
        answer.prompt_tokens = chunk.usage.prompt_tokens
    if event := getattr(chunk, "event", None):
        answer.statuses.append(event["data"]["description"])
    for choice in chunk.choices:
        answer.text += choice.delta.content or ""
        answer.thoughts += getattr(choice.delta, "reasoning_content", None) or ""
        answer.finish = choice.finish_reason or answer.finish


@dataclass(frozen=True)
class LangChainClient:
    url: str
    key: str

    def ask(self, wish: Wish) -> Answer:
        answer, messages = Answer(), list(wish.messages)
        try:
            while (message := self._asked(wish, messages, answer)).tool_calls:
                answer.calls += [call["name"] + json.dumps(call["args"]) for call in message.tool_calls]
                called = [(call["id"], wish.results[call["name"]]) for call in message.tool_calls]
                messages += [message, *(ToolMessage(result, tool_call_id=pk) for pk, result in called)]
        except openai.APIError as error:
            answer.error = error_of(error)
        return answer

    def _asked(self, wish: Wish, messages: list[Any], answer: Answer) -> AIMessage:
        model: Any = ChatOpenAI(
            model=wish.model,
            base_url=self.url,
            api_key=self.key,  # type: ignore[arg-type]
            max_retries=0,
            timeout=PATIENCE_SECONDS,
            default_headers=wish.headers,
            stream_usage=True,
        )
        chat = model.bind_tools([tool_named(name) for name in wish.results]) if wish.results else model
        said = self._streamed(chat, messages, wish, answer) if wish.stream else chat.invoke(messages)
        answer.text = said.text
        answer.finish = said.response_metadata.get("finish_reason", "")
        answer.prompt_tokens = said.usage_metadata["input_tokens"] if said.usage_metadata else None
        return said

    def _streamed(self, chat: Any, messages: list[Any], wish: Wish, answer: Answer) -> AIMessageChunk:
        whole = AIMessageChunk("")
        for chunk in chat.stream(messages):
            whole += chunk
            answer.text = whole.text
            if wish.leave_at and wish.leave_at in answer.text:
                break
        return whole
