"""The responses of `/v1/chat/completions` as bytes: our own chunks and notices, never an upstream's. PURE.

One `id`, `created` and `model` for all chunks of an answer. A notice is a chunk with an empty delta and an extra key
that Open WebUI shows as a status; every other client ignores it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dialogs.api.canonical import ClientCall

DONE = b"data: [DONE]\n\n"
_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
KEEP_ALIVE = b": keep-alive\n\n"
# OpenAI knows four; an answer that filled the window was cut by length.
FINISH_REASONS = {"stop", "length", "tool_calls", "content_filter"}


@dataclass(frozen=True)
class Envelope:
    """What all chunks of one answer share."""

    id: str
    created: int
    model: str

    def chunk(self, delta: Mapping[str, Any], *, finish_reason: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return self._event({"choices": [choice], **more})

    def role(self) -> bytes:
        return self.chunk({"role": "assistant", "content": ""})

    def text(self, text: str) -> bytes:
        return self.chunk({"content": text})

    def thought(self, text: str) -> bytes:
        return self.chunk({"reasoning_content": text})

    def status(self, words: str, *, done: bool) -> bytes:
        return self.chunk({}, event={"type": "status", "data": {"description": words, "done": done}})

    def calls(self, calls: Sequence[ClientCall]) -> bytes:
        return self.chunk({"tool_calls": [{"index": at, **_call(call)} for at, call in enumerate(calls)]})

    def usage(self, usage: Mapping[str, Any], ours: Mapping[str, Any]) -> bytes:
        return self._event({"choices": [], "usage": usage, **_ours(ours)})

    def whole(
        self, message: Mapping[str, Any], *, finish_reason: str, usage: Any, ours: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The same answer to a request that wants no stream."""
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason}
        return {**self._head("chat.completion"), "choices": [choice], "usage": usage, **_ours(ours)}

    def _event(self, rest: Mapping[str, Any]) -> bytes:
        return event({**self._head("chat.completion.chunk"), **rest})

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}


def ending(
    sent: Envelope,
    calls: Sequence[ClientCall],
    reason: str,
    usage: Mapping[str, Any] | None,
    ours: Mapping[str, Any] = MappingProxyType({}),
) -> Iterator[bytes]:
    """The last chunks. `usage` only where it was asked for: clients that expect choices break on it."""
    if calls:
        yield sent.calls(calls)
    yield sent.chunk({}, finish_reason=reason)
    if usage:
        yield sent.usage(usage, ours)
    yield DONE


def event(body: Mapping[str, Any]) -> bytes:
    return f"data: {_compact(body)}\n\n".encode()


def message(text: str, thoughts: str, calls: Sequence[ClientCall]) -> dict[str, Any]:
    said: dict[str, Any] = {"role": "assistant", "content": text or None if calls else text}
    if thoughts:
        said["reasoning_content"] = thoughts
    if calls:
        said["tool_calls"] = [_call(call) for call in calls]
    return said


def finish_reason(reason: str, *, calls: bool) -> str:
    if calls:
        return "tool_calls"
    return reason if reason in FINISH_REASONS - {"tool_calls"} else "length" if reason == "context_window" else "stop"


def _ours(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {"dominds": dict(facts)} if facts else {}


def _call(call: ClientCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


# The notices that a client gets while its conversation is compacted, and their removal when they come back in a
# history. As content they are lines of their own, so that they can be recognised.
COMPACTING = "Compacting conversation history..."
COMPACTED = "Context compacted, continuing..."
NOT_COMPACTED = "The context could not be made smaller, continuing..."
FULL = "The answer was ended: the context is full."
BREAK = "\n\n"

_SIZES = r" \(≈[\d.]+k? → ≈[\d.]+k? tokens\)"
_NUMBERS = r" \(≈[\d,]+ of [\d,]+ tokens\)"
_WORDS = "|".join(
    (
        re.escape(COMPACTING),
        re.escape(NOT_COMPACTED),
        rf"{re.escape(COMPACTED)}(?:{_SIZES})?",
        rf"{re.escape(FULL)}(?:{_NUMBERS})?",
    )
)
# Only as they are sent, with their mark, breaks and numbers: a model may have said the same words.
_LINE = rf"> (?:{_WORDS})[ \t]*(?:\n\n|\n?\Z)"
_BEFORE = re.compile(rf"\A(?:{_LINE})+")
_AMID = re.compile(rf"\n\n{_LINE}(?:(?:\n\n)?{_LINE})*")


def compacted(before: int | None, after: int | None) -> str:
    """With the estimates, where they are known: "Context compacted, continuing... (≈12.4k → ≈4.9k tokens)"."""
    if before is None or after is None:
        return COMPACTED
    return f"{COMPACTED} (≈{_short(before)} → ≈{_short(after)} tokens)"


def as_content(words: str, *, has_said: bool) -> str:
    """The notice as a paragraph of the answer. `has_said`: after words of the answer, which may break off anywhere."""
    return f"{BREAK if has_said else ''}> {words}{BREAK}"


def as_comment(before: int | None = None, limit: int | None = None) -> bytes:
    """A comment between events, which every client ignores, with the estimate and the limit if they are known."""
    sizes = f" ≈{_short(before)} tokens, the limit is {_short(limit)}" if before and limit else ""
    return f": compacting the conversation{sizes}\n\n".encode()


def without_notices(text: str) -> str:
    """The text as the model wrote it."""
    return _AMID.sub("", _BEFORE.sub("", text))


def _short(tokens: int) -> str:
    return f"{tokens / 1000:.1f}k" if tokens >= 1000 else str(tokens)
