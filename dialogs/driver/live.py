"""The answer while it streams: collected in memory, shown to browsers, flushed to the database.

Browsers get what the database lacks of the text so far, at most about 16 times a second; the database gets all of it
once a second.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils import timezone

from dialogs.common import broadcast
from dialogs.common.text import storable
from dialogs.providers.base import (
    ArgumentsDelta,
    Finished,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolCall,
    ToolCallReady,
    UsageReported,
)
from dialogs.turns.writes.generations import Answer
from health.monitor.levels import Usage, UsageUnavailable
from health.tokens.counters import rough

SHOW_EVERY_SECONDS = 0.06
# Where nobody looks on: so late at the most a page that is opened meanwhile gets what the database lacks.
UNSEEN_SECONDS = 0.3
# Of arguments, which are mostly code and JSON.
CHARS_A_TOKEN = 3


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
    # Of the prompt, estimated, and of the window: known where somebody looks on.
    prompt_tokens: int | None = None
    window: int | None = None
    argument_chars: int = 0
    # How many characters of answer and thoughts the database surely holds: what it held before it was last written to,
    # so that a browser which read it a moment ago lacks nothing.
    kept: tuple[int, int] = (0, 0)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, event: StreamEvent) -> None:
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
        if isinstance(event, ArgumentsDelta):
            self.argument_chars += len(event.text)
            self.changed.set()
        if isinstance(event, TextDelta | ReasoningDelta):
            self.first_token_at = self.first_token_at or timezone.now()
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

    @property
    def size(self) -> tuple[int, int] | None:
        """Tokens of prompt and answer so far, estimated, and the window."""
        if self.prompt_tokens is None or not self.window:
            return None
        answer = rough(self.text) + rough(self.reasoning) + self.argument_chars // CHARS_A_TOKEN
        return self.prompt_tokens + answer, self.window

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
    """Send the state whenever it has changed, then rest a little; longer where nobody looks on. Returns once the answer
    is closed."""
    while not live.closed:
        live.changed.clear()
        at, thought_at = live.kept
        is_seen = await broadcast.stream_state(
            dialog_id,
            generation_id=generation_id,
            seq=live.seq,
            text=live.text[at:],
            reasoning=live.reasoning[thought_at:],
            at=at,
            thought_at=thought_at,
            size=live.size,
        )
        await asyncio.sleep(SHOW_EVERY_SECONDS if is_seen else UNSEEN_SECONDS)
        await live.changed.wait()
