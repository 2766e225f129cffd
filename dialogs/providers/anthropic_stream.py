"""One answer of an Anthropic message stream, put together from its events. Pure: events in, ours out."""

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
from dialogs.providers.chat_stream import PartialCall
from dialogs.providers.usage import Dialect, normalise
from dialogs.providers.wire import as_mapping, as_text, recordable

FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
    "model_context_window_exceeded": "context_window",
}


@dataclass
class MessageStream:
    calls: dict[int, PartialCall] = field(default_factory=dict)
    at_start: dict[str, Any] = field(default_factory=dict)
    at_end: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
    begun: bool = False

    def add(self, event: Mapping[str, Any]) -> Iterator[StreamEvent]:
        kind, index = event.get("type"), event.get("index")
        place = index if isinstance(index, int) else 0
        if kind == "message_start":
            self.begun = True
            self.at_start = dict(as_mapping(as_mapping(event.get("message")).get("usage")))
        elif kind == "content_block_start":
            yield from self._begin_block(place, as_mapping(event.get("content_block")))
        elif kind == "content_block_delta":
            yield from self._add_to_block(place, as_mapping(event.get("delta")))
        elif kind == "content_block_stop" and place in self.calls:
            yield self._finish_call(self.calls.pop(place))
        elif kind == "message_delta":
            self.reason = as_text(as_mapping(event.get("delta")).get("stop_reason")) or self.reason
            self.at_end |= {name: count for name, count in as_mapping(event.get("usage")).items() if count is not None}

    def end(self) -> Iterator[StreamEvent]:
        """What closes a whole answer. Raises a ProviderError when the answer is not whole."""
        if not self.begun:
            raise BadAnswer("The provider's answer is no message stream.")
        if not self.reason:
            raise ProviderUnreachable("The stream ended before the answer was complete.")
        raw = self._usage()
        yield UsageReported(normalise(raw or None, dialect=Dialect.ANTHROPIC), recordable(raw) or None)
        yield Finished(FINISH_REASONS.get(self.reason, self.reason))

    def _usage(self) -> dict[str, Any]:
        """The counts at the end are totals: they replace those of the start, whose output is of one token only."""
        begun = {name: count for name, count in self.at_start.items() if name != "output_tokens"}
        return begun | self.at_end

    def _begin_block(self, place: int, block: Mapping[str, Any]) -> Iterator[StreamEvent]:
        if block.get("type") == "tool_use":
            given = block.get("input")
            whole = json.dumps(given) if given else ""
            self.calls[place] = PartialCall(as_text(block.get("id")), as_text(block.get("name")), whole)
            if whole:
                yield ArgumentsDelta(whole)
        elif text := as_text(block.get("text")):
            yield TextDelta(text)

    def _add_to_block(self, place: int, delta: Mapping[str, Any]) -> Iterator[StreamEvent]:
        if text := as_text(delta.get("text")):
            yield TextDelta(text)
        elif thought := as_text(delta.get("thinking")):
            yield ReasoningDelta(thought)
        elif place in self.calls and (piece := as_text(delta.get("partial_json"))):
            self.calls[place].arguments += piece
            yield ArgumentsDelta(piece)

    def _finish_call(self, call: PartialCall) -> ToolCallReady:
        return ToolCallReady(ToolCall(id=call.id, name=call.name, arguments=call.arguments or "{}"))
