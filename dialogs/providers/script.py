"""What a scripted provider plays: steps, and where they come from. For tests, benchmarks and screenshots.

A script is a list in memory or a JSON file in the data folder, played by several processes at once:
`{"steps": [{...}, ...], "models": [{"id": "tiny", "context_length": 1000}]}`, a step with the fields of `Step`.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import IO, Any, Protocol

from dialogs.providers.base import ChatRequest, NotConfigured, RequestRefused, ToolCall


@dataclass(frozen=True, kw_only=True)
class Step:
    """One answer. What is not chosen does not happen: no usage is reported unless the step has one.

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
class Taken:
    """A request, and which step answers it."""

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
        self.taken: list[Taken] = []

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


def choose(steps: Sequence[Step], request: ChatRequest, *, played: int) -> Taken:
    said = next((message.content for message in reversed(request.messages) if message.role == "user"), "")
    for number, step in enumerate(steps):
        if step.match and step.match in said:
            return Taken(request, number, matched=True)
    in_order = [number for number, step in enumerate(steps) if not step.match]
    if not in_order:
        raise RequestRefused("The script has no step for this request.")
    return Taken(request, in_order[min(played, len(in_order) - 1)], matched=False)


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
    pieces = {name: _pieces(raw[name]) for name in ("text", "reasoning") if name in raw}
    calls = tuple(ToolCall(**call) for call in raw.get("tool_calls", ()))
    return Step(**{**raw, **pieces, "tool_calls": calls})


def _pieces(raw: str | Sequence[str]) -> tuple[str, ...]:
    return (raw,) if isinstance(raw, str) else tuple(raw)
