"""Watching an answer grow: at nine tenths of the window it is cut for a compaction, at all of it it is ended.

All that the model writes counts: words, thoughts, arguments of calls. Usage comes with the last chunk at best, so what
has come is counted here, from where bytes and letters no longer show that nothing is near. Estimated; for guarded
dialogs only. A limit below the window plays no part: there compaction comes before the next request.
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

# The most tokens that one character can be, in any script.
MOST_TOKENS_A_CHAR = 2
# So long, in tokens and as a share of the window, an answer may go on to the end of its sentence; half of it, if a word
# ends there.
PATIENCE_TOKENS = 40
PATIENCE_SHARE = 0.02
# Where more of the limit must stay in any case, a compaction leaves an answer too little room to go on.
MOST_KEPT = 0.9
# What ends a sentence or a line. After a digit the point may stand in a number.
_SENTENCE = re.compile(r"(?<!\d)[.!?…][\"')\]*_”’]*\s*\Z|[。！？][”’」）]*\s*\Z|\n\s*\Z")
_IN_WORD = re.compile(r"[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]\Z")


@dataclass
class Watch:
    """Watches one answer. There is none where the window is unknown: such an answer is not cut."""

    sizing: Sizing
    guard: Guard
    window: int
    received_tokens: int = 0
    _uncounted: list[str] = field(default_factory=list)
    _chars: int = 0
    # The end of the answer's text, while neither thoughts nor calls came after it.
    _said: str = ""

    def add(self, event: StreamEvent) -> None:
        if not isinstance(event, TextDelta | ReasoningDelta | ArgumentsDelta):
            return
        self._said = (self._said + event.text)[-8:] if isinstance(event, TextDelta) else ""
        self._uncounted.append(event.text)
        self._chars += len(event.text)

    @property
    def is_far(self) -> bool:
        """Do prompt and answer surely stay below the mark, without a token counted?"""
        most = self.sizing.request_estimate.tokens if self.sizing.has_request_estimate else self.sizing.at_most
        spare = SEVERE_SHARE * self.window - self.received_tokens - MOST_TOKENS_A_CHAR * self._chars
        return most is not None and most < spare

    def prepare(self) -> None:
        """Estimate the prompt, and have a counter for the answer. For a thread: it may read a vocabulary and the
        database, and ask the server."""
        _ = self.sizing.request_estimate

    def count(self) -> None:
        """Count the text that came since the last count."""
        if self._uncounted:
            self.received_tokens += self.sizing.counter.count(["".join(self._uncounted)])[0]
            self._uncounted, self._chars = [], 0

    @property
    def tokens(self) -> int:
        """Prompt, and the answer so far as it is counted."""
        return self.sizing.request_estimate.tokens + self.received_tokens

    @property
    def over(self) -> float:
        """So many tokens past the mark at which an answer is cut; less than none before it."""
        return self.tokens - SEVERE_SHARE * self.window

    @property
    def is_at_the_mark(self) -> bool:
        """Is it so much that it is to be cut, where that helps?"""
        patience = self._patience() * min(PATIENCE_TOKENS, PATIENCE_SHARE * self.window)
        return self.over >= max(0.0, patience)

    def can_help(self) -> bool:
        """May a compaction in the middle of the answer be made, and would it leave room for the rest? Reads the
        database the first time."""
        return self._can_help

    @cached_property
    def _can_help(self) -> bool:
        leaf = self.sizing.context.dialog.current_leaf
        return leaf is not None and may_compact(leaf) and _leaves_room(self.sizing, self.guard, self.window)

    def _patience(self) -> float:
        """The share of all patience that what was said last may have."""
        if not self._said or _SENTENCE.search(self._said):
            return 0.0
        return 1.0 if _IN_WORD.search(self._said) else 0.5

    @property
    def is_full(self) -> bool:
        return self.tokens >= self.window


def _leaves_room(sizing: Sizing, guard: Guard, window: int) -> bool:
    """What was said until then stays too, unless it is long."""
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
