"""A provider that plays a script: texts, usage, tool calls, delays, errors, dropped connections. No network. For tests,
benchmarks and screenshots.

It checks every request against `laws.py` and records it, so that tests can see what was sent. A script is a list in
memory, or a JSON file in the data folder that several processes play together: `{"steps": [{...}, ...], "models":
[{"id": "tiny", "context_length": 1000}]}`, a step with the fields of `Step`.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import IO, Any, ClassVar, Protocol, Self

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
    ToolCall,
    ToolCallReady,
    UsageReported,
)
from dialogs.providers.laws import broken_law
from dialogs.providers.usage import facts_in, normalise, recordable

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
        """Nothing to close: there is no connection between two calls."""

    def _goes_on(self, request: ChatRequest) -> bool:
        """Whether the answer continues the message that ends the request, as some models do."""
        last = request.messages[-1] if request.messages else None
        is_begun = last is not None and last.role == "assistant" and last.content and not last.tool_calls
        return bool(self.script.continues and request.continues and is_begun)

    async def _fail(self, step: Step) -> None:
        """Raise the failure that the step scripts after its text, if any."""
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
    """The ProviderError whose code the script names."""
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


@dataclass(frozen=True, kw_only=True)
class Step:
    """One answer. Fields that are left out do nothing: without `usage` none is reported.

    `match` picks the step whenever the last user message contains it; steps without one are played in
    order, the last of them again and again. `error`, `drop` and `hang` come after reasoning and text.
    """

    match: str = ""
    reasoning: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    repeat: int = 1
    delay: float = 0.0
    tool_calls: tuple[ToolCall, ...] = ()
    # As a server would send it, right or wrong: it goes through the normaliser.
    usage: Any = None
    finish: str = "stop"
    # {"code": "rate_limited", "message": ..., "retry_after": ..., "context_window": ..., "prompt_tokens": ...}
    error: Mapping[str, Any] | None = None
    drop: bool = False
    hang: bool = False


@dataclass(frozen=True)
class PlayedRequest:
    """A recorded request, and the step that answers it."""

    request: ChatRequest
    step: int
    matched: bool


class Script(Protocol):
    models: Sequence[Mapping[str, Any]]
    # Does it go on with an answer that ends the request?
    continues: bool

    def take(self, request: ChatRequest) -> Step:
        """The step that answers this request, which is recorded whatever comes of it."""
        ...


class MemoryScript:
    continues = False

    def __init__(self, steps: Sequence[Step], models: Sequence[Mapping[str, Any]] = ()) -> None:
        self.steps = tuple(steps)
        self.models = models
        self.taken: list[PlayedRequest] = []

    def take(self, request: ChatRequest) -> Step:
        chosen = choose(self.steps, request, played=sum(not taken.matched for taken in self.taken))
        self.taken.append(chosen)
        return self.steps[chosen.step]


class FileScript:
    """Progress is kept in `<file>.requests.jsonl`, one line a request, so that processes share it.

    Each line ends with how many steps had been played in order by then: only the end is read, however long the log.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log = path.with_name(f"{path.name}.requests.jsonl")
        self.steps, self.models, self.continues = _load(path)

    def take(self, request: ChatRequest) -> Step:
        with self.log.open("ab+") as log:
            fcntl.flock(log, fcntl.LOCK_EX)
            played = _played(log)
            chosen = choose(self.steps, request, played=played)
            line = {"step": chosen.step, "matched": chosen.matched, **asdict(request)}
            line["played"] = played + (not chosen.matched)
            log.write(json.dumps(line).encode() + b"\n")
        return self.steps[chosen.step]


def _played(log: IO[bytes]) -> int:
    size = log.seek(0, os.SEEK_END)
    log.seek(max(0, size - 40))
    found = re.search(rb'"played": (\d+)}\n$', log.read())
    return int(found[1]) if found else 0


def choose(steps: Sequence[Step], request: ChatRequest, *, played: int) -> PlayedRequest:
    said = next((message.content for message in reversed(request.messages) if message.role == "user"), "")
    for number, step in enumerate(steps):
        if step.match and step.match in said:
            return PlayedRequest(request, number, matched=True)
    in_order = [number for number, step in enumerate(steps) if not step.match]
    if not in_order:
        raise RequestRefused("The script has no step for this request.")
    return PlayedRequest(request, in_order[min(played, len(in_order) - 1)], matched=False)


def _load(path: Path) -> tuple[tuple[Step, ...], list[dict[str, Any]], bool]:
    try:
        script = json.loads(path.read_text())
        steps = tuple(read_step(step) for step in script["steps"])
        return steps, script.get("models", []), bool(script.get("continues"))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise NotConfigured(f"The script {path.name} cannot be played: {error!r}") from error


def read_step(raw: Mapping[str, Any]) -> Step:
    """A step as the file writes it; a single text stands for a list of one."""
    unknown = set(raw) - {field.name for field in fields(Step)}
    if unknown:
        raise ValueError(f"unknown {sorted(unknown)}")
    pieces = {name: _texts_of(raw[name]) for name in ("text", "reasoning") if name in raw}
    calls = tuple(ToolCall(**call) for call in raw.get("tool_calls", ()))
    return Step(**{**raw, **pieces, "tool_calls": calls})


def _texts_of(raw: str | Sequence[str]) -> tuple[str, ...]:
    return (raw,) if isinstance(raw, str) else tuple(raw)
