"""One answer of a chat-completions stream, put together from its chunks. Pure: chunks in, events out.

Chunks are read as plain JSON that may have any shape: servers that call themselves compatible differ.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dialogs.providers.base import (
    ArgumentsDelta,
    BadAnswer,
    Finished,
    ProviderFailed,
    ProviderUnreachable,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolCall,
    ToolCallReady,
    UsageReported,
)
from dialogs.providers.usage import as_list, as_mapping, as_text, later, normalise, recordable
from health.monitor.levels import Usage, UsageUnavailable

FINISH_REASONS = {"function_call": "tool_calls", "max_tokens": "length"}


@dataclass
class PartialCall:
    """A tool call while its pieces arrive."""

    id: str = ""
    name: str = ""
    arguments: str = ""

    def is_another(self, delta: Mapping[str, Any]) -> bool:
        """Does this piece begin another call? Ollama and gateways to Gemini give all calls of an answer the same index.

        A new id alone is no sign: vLLM gave each piece one.
        """
        begun = as_text(delta.get("id")), as_text(as_mapping(delta.get("function")).get("name"))
        return bool(self.id) and all(begun) and begun[0] != self.id

    def add(self, delta: Mapping[str, Any]) -> Iterator[ArgumentsDelta]:
        function = as_mapping(delta.get("function"))
        self.id = self.id or as_text(delta.get("id"))
        name, arguments = as_text(function.get("name")), function.get("arguments")
        # Some servers repeat the name, empty or whole, beside every piece of the arguments.
        if name and name != self.name:
            self.name += name
        piece = json.dumps(arguments) if isinstance(arguments, Mapping) else as_text(arguments)
        self.arguments += piece
        if piece:
            yield ArgumentsDelta(piece)


@dataclass
class ChatStream:
    # Calls by their index; and calls whose index another call has taken over.
    calls: dict[int, PartialCall] = field(default_factory=dict)
    earlier: list[tuple[int, PartialCall]] = field(default_factory=list)
    usage: Usage | UsageUnavailable = field(default_factory=lambda: normalise(None))
    usage_raw: dict[str, Any] = field(default_factory=dict)
    timings: Mapping[str, Any] | None = None
    reason: str = ""
    begun: bool = False

    def add(self, chunk: Mapping[str, Any]) -> Iterable[StreamEvent]:
        if "usage" in chunk or "timings" in chunk:
            self._note_usage(chunk)
        choices = as_list(chunk.get("choices"))
        choice = as_mapping(choices[0]) if choices else None
        if not choice:
            return ()
        self.begun = True
        self.reason = as_text(choice.get("finish_reason")) or self.reason
        return self._deltas(as_mapping(choice.get("delta")))

    def end(self) -> Iterator[StreamEvent]:
        """The last events of a complete answer. Raises a ProviderError when the answer is incomplete."""
        if not self.begun:
            raise BadAnswer("The provider's answer is no chat stream: it holds no choices.")
        if self.reason == "error":
            raise ProviderFailed("The provider ended the answer with an error.")
        if not self.reason:
            raise ProviderUnreachable("The stream ended before the answer was complete.")
        for index, call in (*self.earlier, *sorted(self.calls.items())):
            yield ToolCallReady(ToolCall(id=call.id or f"call_{index}", name=call.name, arguments=call.arguments))
        yield UsageReported(self.usage, self.usage_raw or None)
        yield Finished(FINISH_REASONS.get(self.reason, self.reason))

    def _note_usage(self, chunk: Mapping[str, Any]) -> None:
        usage, timings = chunk.get("usage"), chunk.get("timings")
        if usage is None and timings is None:
            return
        self.timings = as_mapping(timings) or self.timings
        reported = normalise(usage, timings=self.timings)
        if later(self.usage, reported) is reported:
            self.usage, self.usage_raw = reported, recordable(_raw(usage, self.timings))

    def _deltas(self, delta: Mapping[str, Any]) -> Iterable[StreamEvent]:
        if len(delta) == 1 and (text := as_text(delta.get("content"))):
            # So are nearly all of them.
            return (TextDelta(text),)
        return self._all_deltas(delta)

    def _all_deltas(self, delta: Mapping[str, Any]) -> Iterator[StreamEvent]:
        thought = as_text(delta.get("reasoning_content")) or as_text(delta.get("reasoning"))
        if thought:
            yield ReasoningDelta(thought)
        content = delta.get("content")
        if isinstance(content, list):
            yield from filter(None, map(_part, content))
        elif text := as_text(content):
            yield TextDelta(text)
        if refusal := as_text(delta.get("refusal")):
            yield TextDelta(refusal)
        for piece in as_list(delta.get("tool_calls")):
            yield from self._call(as_mapping(piece)).add(as_mapping(piece))

    def _call(self, piece: Mapping[str, Any]) -> PartialCall:
        """The call that a piece belongs to. Servers that send no index send each call whole, with its id."""
        index = piece.get("index")
        if not isinstance(index, int):
            index = len(self.calls) if piece.get("id") or not self.calls else max(self.calls)
        if index in self.calls and self.calls[index].is_another(piece):
            self.earlier.append((index, self.calls.pop(index)))
        return self.calls.setdefault(index, PartialCall())


def _raw(usage: object, timings: Mapping[str, Any] | None) -> dict[str, Any]:
    """The usage as the server sent it, with llama.cpp's timings, to be stored."""
    sent = dict(usage) if isinstance(usage, Mapping) else {"usage": usage}
    return sent | ({"timings": timings} if timings else {})


def _part(part: object) -> StreamEvent | None:
    """Mistral sends its reasoning as parts of the content."""
    part = as_mapping(part)
    if part.get("type") == "thinking":
        thoughts = as_list(part.get("thinking"))
        thought = "".join(as_text(as_mapping(piece).get("text")) for piece in thoughts)
        return ReasoningDelta(thought) if thought else None
    text = as_text(part.get("text"))
    return TextDelta(text) if text else None
