"""The provider that plays a script: chosen texts, usage, tool calls, delays, errors, drops. No network.

It is stricter than any server (`laws.py`) and keeps every request, so that tests can ask what was sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from django.conf import settings as django_settings

from dialogs.providers.base import (
    ArgumentsDelta,
    ChatRequest,
    ContextOverflow,
    Finished,
    ModelFacts,
    ModelNotFound,
    NotConfigured,
    ProviderError,
    ProviderFailed,
    ProviderSettings,
    ProviderUnreachable,
    ReasoningDelta,
    RequestRefused,
    StreamEvent,
    TextDelta,
    ToolCallReady,
    UsageReported,
)
from dialogs.providers.laws import broken_law
from dialogs.providers.model_facts import facts_in
from dialogs.providers.script import FileScript, MemoryScript, Script, Step
from dialogs.providers.usage import normalise
from dialogs.providers.wire import recordable

# Servers send the arguments of a call in pieces of about this length.
ARGUMENTS_CHARS = 20


class Scripted:
    kind: ClassVar[str] = "scripted"

    def __init__(self, settings: ProviderSettings, *, script: Script | None = None) -> None:
        self.settings = settings
        self.script = script or FileScript(script_path(settings.base_url))

    @classmethod
    def from_steps(cls, *steps: Step, models: Sequence[Mapping[str, Any]] = ()) -> Self:
        """A provider in memory. One instance may serve many calls: its place in the script goes along."""
        settings = ProviderSettings(name="scripted", kind=cls.kind, base_url="memory")
        return cls(settings, script=MemoryScript(steps, models))

    @property
    def requests(self) -> list[ChatRequest]:
        """Every request so far, of a script in memory."""
        if not isinstance(self.script, MemoryScript):
            raise TypeError("A script in a file keeps its requests in the file beside it.")
        return [taken.request for taken in self.script.taken]

    async def stream(self, request: ChatRequest) -> AsyncGenerator[StreamEvent, None]:
        step = self.script.take(request)
        if law := broken_law(request.messages[:-1] if self._goes_on(request) else request.messages):
            raise RequestRefused(f"The request is not valid: {law}.")
        for event in _pieces(step):
            await asyncio.sleep(step.delay)
            yield event
        await self._fail(step)
        for call in step.tool_calls:
            yield ToolCallReady(call)
        raw = recordable(step.usage) if isinstance(step.usage, Mapping) else None
        yield UsageReported(normalise(step.usage), raw)
        yield Finished(step.finish)

    async def list_models(self) -> tuple[ModelFacts, ...]:
        return facts_in({"data": list(self.script.models)})

    async def read_limits(self, model_id: str) -> ModelFacts:
        for facts in await self.list_models():
            if facts.model_id == model_id:
                return facts
        raise ModelNotFound(f"The script lists no model called {model_id!r}.")

    async def aclose(self) -> None:
        """Nothing is open between two calls."""

    def _goes_on(self, request: ChatRequest) -> bool:
        """Whether the answer continues the message that ends the request, as some models do."""
        last = request.messages[-1] if request.messages else None
        is_begun = last is not None and last.role == "assistant" and last.content and not last.tool_calls
        return bool(self.script.continues and request.continues and is_begun)

    async def _fail(self, step: Step) -> None:
        """What goes wrong after the text, if anything."""
        if step.hang:
            await asyncio.sleep(self.settings.read_timeout)
            raise ProviderUnreachable(f"The script was silent for {self.settings.read_timeout:g} s.")
        if step.drop:
            raise ProviderUnreachable("The script dropped the connection.")
        if step.error is not None:
            raise scripted_error(step.error)


def script_path(name: str) -> Path:
    """The file of a script. It must lie inside the data folder, wherever its name or a link leads."""
    folder = Path(django_settings.DOMINDS_DATA_DIR).resolve()
    path = (folder / name).resolve()
    if not django_settings.DOMINDS_SCRIPTED:
        raise NotConfigured("Scripts are played only where DOMINDS_SCRIPTED is set.")
    if folder not in path.parents:
        raise NotConfigured("A script must lie inside the data folder.")
    return path


def scripted_error(raw: Mapping[str, Any]) -> ProviderError:
    """One of the family, by its code."""
    details = {name: value for name, value in raw.items() if name not in {"code", "message"}}
    code, message = raw.get("code", ProviderFailed.code), raw.get("message", "")
    if code == ContextOverflow.code:
        return ContextOverflow(message, **details)
    for kind in ProviderError.__subclasses__():
        if kind.code == code:
            return kind(message, **details)
    raise NotConfigured(f"The script names an unknown error: {code!r}.")


def _pieces(step: Step) -> Iterator[StreamEvent]:
    for thought in step.reasoning:
        yield ReasoningDelta(thought)
    for text in step.text * step.repeat:
        yield TextDelta(text)
    for call in step.tool_calls:
        for at in range(0, len(call.arguments), ARGUMENTS_CHARS):
            yield ArgumentsDelta(call.arguments[at : at + ARGUMENTS_CHARS])
