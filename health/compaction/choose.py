"""Which chunks to keep within a budget: greedy by what a chunk adds, for each token it costs.

The worth is submodular (a feature that already stands adds little), so a lazy heap finds the greedy order
without computing everything again. A chunk that leans on another (a reply on its question) brings it along.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from health.compaction.features import DIMINISHING, Features

GAP_TOKENS = 3
JOIN = 0.2


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk that may be kept. `bonus` is worth of its own (relevance, rules), `prior` multiplies what it covers.

    The first chosen of a `group` (a message) costs its `label` too.
    """

    tokens: int
    bonus: float
    prior: float
    group: int
    label: int
    leans_on: int | None = None


class Chooser:
    """One choice. `chosen` grows in greedy order, so that any prefix of it is a choice for a smaller budget."""

    def __init__(self, candidates: Sequence[Candidate], features: Features, *, exponent: float) -> None:
        self.candidates, self.features = candidates, features
        self.exponent = exponent
        self.chosen: list[int] = []
        self._taken: set[int] = set()
        self._groups: set[int] = set()
        self._covered: dict[str, int] = {}

    def choose(self, budget_tokens: int) -> list[int]:
        heap = [(-self._rate(at), at) for at in range(len(self.candidates))]
        heapq.heapify(heap)
        while heap and budget_tokens > 0:
            _, at = heapq.heappop(heap)
            if at in self._taken:
                continue
            now = -self._rate(at)
            if heap and now > heap[0][0] + 1e-12:
                heapq.heappush(heap, (now, at))
            elif now < 0 and (cost := self._cost(at)) <= budget_tokens:
                budget_tokens -= cost
                self._take(at)
                for beside in self._beside(at):
                    heapq.heappush(heap, (-self._rate(beside), beside))
        return self.chosen

    def _with(self, at: int) -> list[int]:
        """The chunk and what it leans on, if that does not stand yet."""
        other = self.candidates[at].leans_on
        return [at] if other is None or other in self._taken else [other, at]

    def _cost(self, at: int) -> int:
        together = self._with(at)
        labels = {c.group: c.label for c in (self.candidates[one] for one in together) if c.group not in self._groups}
        gaps = GAP_TOKENS * sum(self._joins(one) for one in together)
        return max(1, sum(self.candidates[one].tokens for one in together) + sum(labels.values()) - gaps)

    def _beside(self, at: int) -> list[int]:
        """The chunks right before and after it in the same message, not taken yet."""
        group = self.candidates[at].group
        return [
            one
            for one in (at - 1, at + 1)
            if 0 <= one < len(self.candidates) and one not in self._taken and self.candidates[one].group == group
        ]

    def _joins(self, at: int) -> int:
        """How many gaps close when it is taken: one for each neighbour that stands."""
        group = self.candidates[at].group
        return sum(one in self._taken and self.candidates[one].group == group for one in (at - 1, at + 1))

    def _rate(self, at: int) -> float:
        worth = sum(self._worth(one) for one in self._with(at)) * (1 + JOIN * self._joins(at))
        return worth / self._cost(at) ** self.exponent

    def _worth(self, at: int) -> float:
        candidate, weights, covered = self.candidates[at], self.features.weights, self._covered
        worth = 0.0
        for key in self.features.each[at]:
            times = covered.get(key, 0)
            if times < len(DIMINISHING):
                worth += weights[key] * DIMINISHING[times]
        return worth * candidate.prior + candidate.bonus

    def _take(self, at: int) -> None:
        for one in self._with(at):
            self.chosen.append(one)
            self._taken.add(one)
            self._groups.add(self.candidates[one].group)
            for key in self.features.each[one]:
                self._covered[key] = self._covered.get(key, 0) + 1
