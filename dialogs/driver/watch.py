"""Watches an answer's size: at nine tenths of the window it is cut for a compaction, in a full window it is ended.

Text, reasoning and arguments of calls count. Usage comes with the last chunk at best, so tokens are estimated here,
once the number of bytes no longer rules out that the point is reached. For guarded dialogs only. A limit
below the window does not matter here: it is checked before the next request.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from django.utils.functional import cached_property

from dialogs.compaction.reads.compaction import may_compact
from dialogs.context.estimate import Sizing, overhead
from dialogs.context.material import MOST_PINNED, beside, of_the_floor, with_unanswered
from dialogs.llms.guard import Guard
from dialogs.providers.base import ArgumentsDelta, ReasoningDelta, StreamEvent, TextDelta
from health.compaction.laws.floor import floor_of
from health.compaction.terms.ports import Kit
from health.compaction.terms.pressure import SEVERE_SHARE
from health.compaction.terms.units import ContextState

# How far past the point an answer may go to end its sentence, in tokens and as a share of the window (the smaller
# counts); half of that if it is between two words.
PATIENCE_TOKENS = 40
PATIENCE_SHARE = 0.02
# If more than this share of the limit must stay, a compaction leaves the answer too little room.
MOST_KEPT = 0.9
# The end of a sentence or line. A full stop after a digit may be a decimal point.
_SENTENCE = re.compile(r"(?<!\d)[.!?…][\"')\]*_”’]*\s*\Z|[。！？][”’」）]*\s*\Z|\n\s*\Z")
_IN_WORD = re.compile(r"[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]\Z")


@dataclass
class Watch:
    """Watches one answer. If the window is unknown there is no Watch, and the answer is not cut."""

    sizing: Sizing
    guard: Guard
    window: int
    received_tokens: int = 0
    _uncounted: list[str] = field(default_factory=list)
    # No vocabulary makes more tokens of a text than it has bytes.
    _bytes: int = 0
    # The last characters of the text; empty after reasoning or a call.
    _said: str = ""

    def add(self, event: StreamEvent) -> None:
        if not isinstance(event, TextDelta | ReasoningDelta | ArgumentsDelta):
            return
        self._said = (self._said + event.text)[-8:] if isinstance(event, TextDelta) else ""
        self._uncounted.append(event.text)
        self._bytes += len(event.text.encode(errors="surrogatepass"))

    @property
    def is_far(self) -> bool:
        """Is it certain without counting tokens that prompt and answer are below the point at which it is cut?"""
        most = self.sizing.request_estimate.tokens if self.sizing.has_request_estimate else self.sizing.at_most
        spare = SEVERE_SHARE * self.window - self.received_tokens - self._bytes
        return most is not None and most < spare

    def prepare(self) -> None:
        """Estimate the prompt and load a counter for the answer. Blocks: it may read a vocabulary and the database, and
        ask the server."""
        _ = self.sizing.request_estimate

    def count(self) -> None:
        """Count the tokens of the text since the last count."""
        if self._uncounted:
            self.received_tokens += self.sizing.counter.count(["".join(self._uncounted)])[0]
            self._uncounted, self._bytes = [], 0

    @property
    def tokens(self) -> int:
        """The prompt, and the answer as far as it is counted."""
        return self.sizing.request_estimate.tokens + self.received_tokens

    @property
    def over(self) -> float:
        """Tokens past the point at which an answer is cut; negative before it."""
        return self.tokens - SEVERE_SHARE * self.window

    @property
    def is_at_the_mark(self) -> bool:
        """Is it time to cut the answer, if that helps?"""
        patience = self._patience() * min(PATIENCE_TOKENS, PATIENCE_SHARE * self.window)
        return self.over >= max(0.0, patience)

    def can_help(self) -> bool:
        """Is a compaction allowed here, and would it leave room for the rest? Reads the database the first time."""
        return self._can_help

    @cached_property
    def _can_help(self) -> bool:
        leaf = self.sizing.context.dialog.current_leaf
        return leaf is not None and may_compact(leaf) and _leaves_room(self.sizing, self.guard, self.window)

    def _patience(self) -> float:
        """The share of the patience, by the end of the text: a sentence's, a word's, or within a word."""
        if not self._said or _SENTENCE.search(self._said):
            return 0.0
        return 1.0 if _IN_WORD.search(self._said) else 0.5

    @property
    def is_full(self) -> bool:
        return self.tokens >= self.window


def _leaves_room(sizing: Sizing, guard: Guard, window: int) -> bool:
    """Does a compaction leave room to continue? The answer up to the cut stays too, unless it is long."""
    tokens = sizing.request_estimate.tokens
    room, said = MOST_KEPT * guard.limit, max(0.0, SEVERE_SHARE * window - tokens)
    said = said if said < MOST_PINNED * guard.limit else 0.0
    return tokens + said <= room or _floor(sizing, guard) + said <= room


def _floor(sizing: Sizing, guard: Guard) -> int:
    """The tokens of the request that no compaction can remove."""
    context, counter = sizing.context, sizing.counter
    besides = overhead(context.dialog.llm, sizing.tools, counter) + beside(context, counter)
    kit = Kit(counter=counter)
    units = of_the_floor(context, counter)
    state = ContextState(units=units, limit=guard.limit, overhead_tokens=besides)
    return floor_of(with_unanswered(state, context), kit).tokens
