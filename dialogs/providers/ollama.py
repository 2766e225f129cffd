"""Ollama, by its native API: its OpenAI API cannot request a window, and drops old messages silently.

Every request states the window that it wants and forbids dropping, so what does not fit is an error. Only a loaded
model has a window; `model_info` has the trained maximum, which the server may not have allocated.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar

import httpx2
import openai
from django.utils.translation import gettext as _

from dialogs.providers.addresses import native_root
from dialogs.providers.base import (
    ArgumentsDelta,
    BadAnswer,
    ChatMessage,
    ChatRequest,
    ContextOverflow,
    Finished,
    ModelFacts,
    ModelNotFound,
    ProviderError,
    ProviderSettings,
    ProviderUnreachable,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolCall,
    ToolCallReady,
    UsageReported,
)
from dialogs.providers.errors import from_answer, translated
from dialogs.providers.http import connecting, json_of, lines_of, refuse_error, refuse_other_than_stream
from dialogs.providers.options import (
    OF_OLLAMA,
    Data,
    Text,
    arguments_of,
    as_texts,
    chosen,
    read_part,
    refused,
    schema_of,
)
from dialogs.providers.usage import Dialect, as_list, as_mapping, as_text, normalise, recordable, whole

LATEST = ":latest"
TELLING = ("family", "parameter_size", "quantization_level")
# OpenAI's values of `reasoning_effort`, as Ollama's `think`.
EFFORTS: dict[str, bool | str] = {
    "none": False,
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "high",
}
COUNTS = ("prompt_eval_count", "eval_count", "prompt_eval_duration", "eval_duration", "load_duration", "total_duration")


class Ollama:
    kind: ClassVar[str] = "ollama"

    def __init__(self, settings: ProviderSettings) -> None:
        self.settings = settings
        self._client = httpx2.AsyncClient(
            base_url=native_root(settings.base_url),
            # Ollama itself takes no key; a proxy in front of it may.
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
                overflow.context_window = await self._window_of(overflow, request)
                raise
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
        """The window of each loaded model. Old versions of Ollama do not state it."""
        try:
            return windows_in(await self._ask("GET", "/api/ps"))
        except ModelNotFound:
            return {}

    async def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        response = await self._client.request(method, path, json=body)
        await refuse_error(response)
        return json_of(response)

    async def _window_of(self, overflow: ContextOverflow, request: ChatRequest) -> int | None:
        """Ollama's refusal states no number. The loaded window is read: it may be smaller than requested."""
        window = overflow.context_window
        with suppress(ProviderError):
            window = window or (await self.read_limits(request.model)).context_length
        return window or request.context_window


def windows_in(body: object) -> Mapping[str, int]:
    """From `/api/ps`: the window of each model that is loaded."""
    loaded = [as_mapping(model) for model in as_list(as_mapping(body).get("models"))]
    return {_name(model): whole(model.get("context_length")) or 0 for model in loaded if _name(model)}


def models_in(body: object, *, windows: Mapping[str, int]) -> tuple[ModelFacts, ...]:
    """From `/api/tags`: every model that is there."""
    models = [as_mapping(model) for model in as_list(as_mapping(body).get("models"))]
    return tuple(
        _facts(_name(model), windows=windows, about=_about(as_mapping(model.get("details"))))
        for model in models
        if _name(model)
    )


def facts_of_model(model_id: str, shown: object, *, windows: Mapping[str, int]) -> ModelFacts:
    """From `/api/show`: the trained maximum, and the window that the model's own file asks for."""
    body = as_mapping(shown)
    info = as_mapping(body.get("model_info"))
    maximum = whole(info.get(f"{as_text(info.get('general.architecture'))}.context_length")) or None
    asked = re.search(r"^[ \t]*+num_ctx[ \t]++(\d{1,9})[ \t\r]*+$", as_text(body.get("parameters")), re.MULTILINE)
    return _facts(
        model_id,
        windows=windows,
        about=_about(as_mapping(body.get("details"))),
        maximum=maximum,
        asked=int(asked[1]) if asked else None,
        remote=bool(body.get("remote_host")),
    )


def _facts(
    name: str,
    *,
    windows: Mapping[str, int],
    about: str,
    maximum: int | None = None,
    asked: int | None = None,
    remote: bool = False,
) -> ModelFacts:
    allocated = windows.get(name, windows.get(name + LATEST))
    window, source = allocated or None, _("set aside now, %(path)s") % {"path": "/api/ps"}
    if window is None and remote:
        window, source = maximum, _("a model in Ollama's cloud, %(path)s") % {"path": "/api/show"}
    if window is None and asked:
        window, source = asked, _("num_ctx of the model's file, %(path)s") % {"path": "/api/show"}
    return ModelFacts(
        model_id=name,
        context_length=window,
        maximum=maximum,
        loaded=None if remote else allocated is not None,
        source=source if window else "",
        note=about if window else _unknown(maximum, about),
    )


def _unknown(maximum: int | None, about: str) -> str:
    note = _("Ollama tells the window once it has loaded the model. Set a context length to ask for one.")
    if maximum:
        note += " " + _("The model can do %(maximum)s tokens at most.") % {"maximum": f"{maximum:,}"}
    return f"{note} ({about})" if about else note


def _name(model: Mapping[str, Any]) -> str:
    return as_text(model.get("name")) or as_text(model.get("model"))


def _about(details: Mapping[str, Any]) -> str:
    """What tells two models apart."""
    return ", ".join(filter(None, (as_text(details.get(name)) for name in TELLING)))


def wire_request(request: ChatRequest) -> dict[str, Any]:
    """`truncate` would drop the oldest messages, `shift` the beginning of the prompt while the answer grows."""
    options = {"num_ctx": request.context_window, "num_predict": request.max_output_tokens}
    body: dict[str, Any] = {
        "model": request.model,
        "messages": _wire_messages(request.messages),
        "stream": True,
        "truncate": False,
        "shift": False,
        "options": {name: value for name, value in options.items() if value} | _options(request.options),
    }
    # Of `tool_choice` Ollama can do "none" only: no tools are sent then.
    if request.tools and request.options.get("tool_choice") != "none":
        body["tools"] = list(request.tools)
    return body | _format(request.options.get("response_format")) | _thinking(request.options)


def _options(options: Mapping[str, Any]) -> dict[str, Any]:
    found = chosen(options, OF_OLLAMA)
    return found | ({"stop": as_texts(found["stop"])} if "stop" in found else {})


def _format(response_format: object) -> dict[str, Any]:
    if schema := schema_of(response_format):
        return {"format": schema}
    return {"format": "json"} if as_mapping(response_format).get("type") == "json_object" else {}


def _thinking(options: Mapping[str, Any]) -> dict[str, Any]:
    """The option for thinking, under Ollama's name or OpenAI's. A model that cannot think refuses the request."""
    think = options.get("think", EFFORTS.get(as_text(options.get("reasoning_effort"))))
    return {} if think is None else {"think": think}


def _wire_messages(messages: tuple[ChatMessage, ...]) -> list[dict[str, Any]]:
    """A result names its tool, because older versions know no ids of calls."""
    names = {call.id: call.name for message in messages for call in message.tool_calls}
    return [_wire_message(message, names) for message in messages]


def _wire_message(message: ChatMessage, names: Mapping[str, str]) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": message.role, "content": message.content} | _images(message)
    if message.tool_calls:
        wire["tool_calls"] = [
            {"id": call.id, "function": {"name": call.name, "arguments": arguments_of(call)}}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        wire |= {"tool_call_id": message.tool_call_id, "tool_name": names.get(message.tool_call_id, "")}
    return wire


def _images(message: ChatMessage) -> dict[str, list[str]]:
    """Beside the text, in their order: Ollama does not say where in the text a picture stood."""
    images = [image for part in message.parts if (image := _image(part)) is not None]
    return {"images": images} if images else {}


def _image(part: Mapping[str, Any]) -> str | None:
    match read_part(part):
        case Text():
            return None
        case Data(_, content) as data if data.is_image:
            return content
        case Data(media_type):
            raise refused(f"Ollama takes text and images, and this is {media_type!r}.")
        case _:
            raise refused("Ollama fetches no images: send them as data URLs, like data:image/png;base64,… .")


@dataclass
class OllamaStream:
    calls: list[ToolCall] = field(default_factory=list)
    last: Mapping[str, Any] = field(default_factory=dict)

    def add(self, line: str) -> Iterator[StreamEvent]:
        chunk = json.loads(line)
        if not isinstance(chunk, Mapping):
            raise BadAnswer(f"The provider sent {type(chunk).__name__} where an object is due.")
        if chunk.get("error"):
            raise from_answer(None, chunk)
        self.last = chunk
        yield from self._deltas(as_mapping(chunk.get("message")))

    def end(self) -> Iterator[StreamEvent]:
        """The last events of a complete answer. Raises a ProviderError when the answer is incomplete."""
        if not ({"message", "done"} & self.last.keys()):
            raise BadAnswer("The provider's answer is no chat stream: it holds no messages.")
        if self.last.get("done") is not True:
            raise ProviderUnreachable("The stream ended before the answer was complete.")
        yield from map(ToolCallReady, self.calls)
        counted = {name: self.last[name] for name in COUNTS if name in self.last}
        # An absent count is unknown: older versions leave the prompt's count out when the prompt was cached.
        yield UsageReported(normalise(counted or None, dialect=Dialect.OLLAMA), recordable(counted) or None)
        yield Finished(self._reason())

    def _deltas(self, message: Mapping[str, Any]) -> Iterator[StreamEvent]:
        if thought := as_text(message.get("thinking")):
            yield ReasoningDelta(thought)
        if text := as_text(message.get("content")):
            yield TextDelta(text)
        for call in map(as_mapping, as_list(message.get("tool_calls"))):
            self.calls.append(self._call(call))
            yield ArgumentsDelta(self.calls[-1].arguments)

    def _call(self, call: Mapping[str, Any]) -> ToolCall:
        """Calls come whole, their arguments as an object; older versions give them no id."""
        function = as_mapping(call.get("function"))
        arguments = function.get("arguments")
        return ToolCall(
            id=as_text(call.get("id")) or f"call_{len(self.calls)}",
            name=as_text(function.get("name")),
            arguments=arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False),
        )

    def _reason(self) -> str:
        """The finish reason. Ollama says "stop" after tool calls too."""
        reason = as_text(self.last.get("done_reason")) or "stop"
        return "tool_calls" if self.calls and reason == "stop" else reason
