"""Watching an answer grow: at nine tenths of the limit it is cut for a compaction, at all of it it is ended.

Usage comes with the last chunk at best, so what has come is counted here (DL2). Estimated; for guarded dialogs only.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dialogs.compacting.estimate import Foretold
from dialogs.providers.base import ReasoningDelta, StreamEvent, TextDelta, ToolCallReady
from health.compaction.ports import Counter
from health.compaction.pressure import SEVERE_SHARE

COUNT_EVERY_CHARS = 200


@dataclass
class Watch:
    """`may_cut`: a compaction can still follow in this turn. What was said before the first word cannot go on later."""

    foretold: Foretold
    limit: int
    counter: Counter
    may_cut: bool
    received_tokens: int = 0
    has_text: bool = False
    has_calls: bool = False
    _uncounted: list[str] = field(default_factory=list)
    _chars: int = 0

    def add(self, event: StreamEvent) -> None:
        self.has_calls = self.has_calls or isinstance(event, ToolCallReady)
        if not isinstance(event, TextDelta | ReasoningDelta):
            return
        self.has_text = self.has_text or (isinstance(event, TextDelta) and bool(event.text.strip()))
        self._uncounted.append(event.text)
        self._chars += len(event.text)
        if self._chars >= COUNT_EVERY_CHARS:
            self.received_tokens += self.counter.count(["".join(self._uncounted)])[0]
            self._uncounted, self._chars = [], 0

    @property
    def tokens(self) -> int:
        return self.foretold.tokens + self.received_tokens

    @property
    def is_to_be_cut(self) -> bool:
        return self.may_cut and self.has_text and not self.has_calls and self.tokens >= SEVERE_SHARE * self.limit

    @property
    def is_full(self) -> bool:
        return self.tokens >= self.limit
