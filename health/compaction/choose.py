"""Which chunks to keep within a budget: greedy by what a chunk adds, for each token it costs.

The worth is submodular (a feature that already stands adds little), so a lazy heap finds the greedy order
without computing everything again. A chunk that leans on others (a reply on its question) brings them along.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from health.compaction.features import DIMINISHING, Features

GAP_TOKENS = 3
# A neighbour of what stands is worth so much more: pieces are understood in their place.
JOIN = 0.2
# When so many in a row did not fit any more, what is left of the budget is not worth the search.
MOST_MISSES = 400
_ADDS = (*DIMINISHING, 0.0)


class Candidate(NamedTuple):
    """A chunk that may be kept. `bonus` is worth of its own (relevance, alarms), `prior` multiplies what it covers.

    `tokens` include the mark of a gap. The first chosen of a `group` (a message) costs its `label` too.
    """

    tokens: int
    bonus: float
    prior: float
    group: int
    label: int
    leans_on: tuple[int, ...] = ()


class Chooser:
    """One choice. `chosen` grows in greedy order, so that any prefix of it is a choice for a smaller budget."""

    def __init__(self, candidates: Sequence[Candidate], features: Features, *, exponent: float) -> None:
        self.candidates, self.features = candidates, features
        self.exponent = exponent
        self.chosen: list[int] = []
        self._taken = bytearray(len(candidates))
        self._groups: set[int] = set()
        # What a feature adds if it is said once more, and how often it stands. The innermost loop only looks up.
        self._gains = list(features.weights)
        self._times = [0] * len(features.weights)
        # What each adds, as last computed. It never grows, so it is a bound until it is computed again.
        self._worths = [own * one.prior + one.bonus for own, one in zip(features.own, candidates, strict=True)]
        # Closed gaps by chunk.
        self._joins = bytearray(len(candidates))

    def cost(self, places: Iterable[int]) -> int:
        """The tokens of these of one group, none of which stands."""
        found = [self.candidates[at] for at in places]
        return sum(one.tokens for one in found) + found[0].label

    def worth(self, places: Iterable[int]) -> float:
        """What these say by themselves."""
        return sum(self._worths[at] for at in places)

    def take(self, places: Iterable[int]) -> int:
        """Choose these whatever they add, in this order; the tokens that they cost."""
        taken = 0
        for at in places:
            if not self._taken[at]:
                taken += self._offer(at, self._worths.__getitem__)[1]
                self._take(at, [])
        return taken

    def choose(self, budget_tokens: int) -> list[int]:
        heap = [(-rate, at) for at, rate in enumerate(self._first_rates())]
        heapq.heapify(heap)
        misses = 0
        while heap and misses < MOST_MISSES:
            _, at = heapq.heappop(heap)
            if self._taken[at]:
                continue
            rate, cost = self._offer(at, self._worth)
            if cost > budget_tokens:
                misses += 1
            elif heap and rate < -heap[0][0] - 1e-12:
                heapq.heappush(heap, (-rate, at))
            elif rate > 0:
                budget_tokens -= cost
                self._take(at, heap)
        return self.chosen

    def _first_rates(self) -> Iterator[float]:
        """What each adds for its tokens while nothing stands: `_offer`, without all that it looks up."""
        for one, worth in zip(self.candidates, self._worths, strict=True):
            cost = one.tokens + one.label
            for lean in one.leans_on:
                other = self.candidates[lean]
                worth += self._worths[lean]
                cost += other.tokens + (0 if other.group == one.group else other.label)
            yield worth / max(1, cost) ** self.exponent

    def _beside(self, at: int) -> Iterator[int]:
        """The chunks right before and after it in the same message, not taken yet."""
        group = self.candidates[at].group
        for one in (at - 1, at + 1):
            if 0 <= one < len(self.candidates) and not self._taken[one] and self.candidates[one].group == group:
                yield one

    def _bound(self, at: int) -> float:
        return self._offer(at, self._worths.__getitem__)[0]

    def _offer(self, at: int, worth_of: Callable[[int], float]) -> tuple[float, int]:
        """What it adds for its tokens, and its tokens; with what it leans on and does not stand yet."""
        one, groups, joins = self.candidates[at], self._groups, self._joins[at]
        worth = worth_of(at)
        cost = one.tokens + (-GAP_TOKENS * joins if one.group in groups else one.label)
        for lean in one.leans_on:
            if not self._taken[lean]:
                other = self.candidates[lean]
                worth += worth_of(lean)
                cost += other.tokens + (0 if other.group in groups or other.group == one.group else other.label)
        cost = max(1, cost)
        return worth * (1 + JOIN * joins) / cost**self.exponent, cost

    def _worth(self, at: int) -> float:
        covers = sum(map(self._gains.__getitem__, self.features.each[at]))
        candidate = self.candidates[at]
        worth = self._worths[at] = covers * candidate.prior + candidate.bonus
        return worth

    def _take(self, at: int, heap: list[tuple[float, int]]) -> None:
        """Choose it with what it leans on; their neighbours are worth more from now on."""
        for one in [*(lean for lean in self.candidates[at].leans_on if not self._taken[lean]), at]:
            self.chosen.append(one)
            self._taken[one] = 1
            self._groups.add(self.candidates[one].group)
            for key in self.features.each[one]:
                self._times[key] = times = min(self._times[key] + 1, len(DIMINISHING))
                self._gains[key] = self.features.weights[key] * _ADDS[times]
            for beside in self._beside(one):
                self._joins[beside] += 1
                heapq.heappush(heap, (-self._bound(beside), beside))
