"""The answer while it streams: collected in memory, shown to browsers, flushed to the database.

Browsers get the whole text so far, at most about 16 times a second; the database gets it once a second.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from dialogs import broadcast
from dialogs.providers.base import (
    Finished,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolCall,
    ToolCallReady,
    UsageReported,
)
from dialogs.services.generations import Answer
from dialogs.text import storable
from health.monitor.usage import Usage, UsageUnavailable

SHOW_EVERY_SECONDS = 0.06


@dataclass
class LiveAnswer:
    """What has come so far. Changes only through `add`, on one event loop."""

    pieces: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    usage: Usage | UsageUnavailable = field(default_factory=lambda: UsageUnavailable("the stream ended early"))
    usage_raw: dict[str, Any] | None = None
    finish_reason: str = ""
    first_token_at: datetime | None = None
    seq: int = 0
    closed: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, event: StreamEvent, *, now: datetime) -> None:
        match event:
            case TextDelta(text):
                self.pieces.append(text)
            case ReasoningDelta(text):
                self.thoughts.append(text)
            case ToolCallReady(call):
                self.calls.append(call)
            case UsageReported(usage, raw):
                self.usage, self.usage_raw = usage, raw
            case Finished(reason):
                self.finish_reason = reason
        if isinstance(event, TextDelta | ReasoningDelta):
            self.first_token_at = self.first_token_at or now
            self.seq += 1
            self.changed.set()

    def close(self) -> None:
        """Nothing more will come; whoever waits for a change is told."""
        self.closed = True
        self.changed.set()

    @property
    def text(self) -> str:
        return _joined(self.pieces)

    @property
    def reasoning(self) -> str:
        return _joined(self.thoughts)

    def as_answer(self) -> Answer:
        return Answer(
            text=self.text,
            reasoning=self.reasoning,
            calls=tuple(self.calls),
            usage=self.usage,
            usage_raw=self.usage_raw,
            finish_reason=self.finish_reason,
            first_token_at=self.first_token_at,
        )


def _joined(pieces: list[str]) -> str:
    """All pieces as one storable text; joined once, so that a long answer costs linear time."""
    if len(pieces) > 1:
        pieces[:] = ["".join(pieces)]
    return storable(pieces[0]) if pieces else ""


async def show(live: LiveAnswer, *, dialog_id: UUID, generation_id: int) -> None:
    """Send the state whenever it has changed, then rest a little. Returns once the answer is closed."""
    while not live.closed:
        live.changed.clear()
        await broadcast.stream_state(
            dialog_id, generation_id=generation_id, seq=live.seq, text=live.text, reasoning=live.reasoning
        )
        await asyncio.sleep(SHOW_EVERY_SECONDS)
        await live.changed.wait()
