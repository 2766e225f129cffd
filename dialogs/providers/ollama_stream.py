"""One answer of Ollama's native chat, put together from its lines. Pure: lines in, events out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dialogs.providers.base import (
    ArgumentsDelta,
    BadAnswer,
    Finished,
    ProviderUnreachable,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolCall,
    ToolCallReady,
    UsageReported,
)
from dialogs.providers.errors import from_answer
from dialogs.providers.usage import Dialect, normalise
from dialogs.providers.wire import as_list, as_mapping, as_text, recordable

COUNTS = ("prompt_eval_count", "eval_count", "prompt_eval_duration", "eval_duration", "load_duration", "total_duration")


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
        """What closes a whole answer. Raises a ProviderError when the answer is not whole."""
        if not ({"message", "done"} & self.last.keys()):
            raise BadAnswer("The provider's answer is no chat stream: it holds no messages.")
        if self.last.get("done") is not True:
            raise ProviderUnreachable("The stream ended before the answer was complete.")
        yield from map(ToolCallReady, self.calls)
        counted = {name: self.last[name] for name in COUNTS if name in self.last}
        # Absent is unknown: older versions leave the prompt's count out when it was cached.
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
        """Ollama says "stop" after calls too."""
        reason = as_text(self.last.get("done_reason")) or "stop"
        return "tool_calls" if self.calls and reason == "stop" else reason
