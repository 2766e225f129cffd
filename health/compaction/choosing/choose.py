"""Which chunks to keep within a budget: greedy by what a chunk adds, for each token it costs.

The worth is submodular (a feature that already stands adds little), so a lazy heap finds the greedy order
without computing everything again. A chunk that leans on others (a reply on its question) brings them along.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from health.compaction.reading.features import DIMINISHING, Features

GAP_TOKENS = 3
# A neighbour of what stands is worth so much more: pieces are understood in their place.
JOIN = 0.2
# When so many in a row did not fit any more, what is left of the budget is not worth the search.
MOST_MISSES = 400
_ADDS = (*DIMINISHING, 0.0)


class Candidate(NamedTuple):
    """A chunk that may be kept. `prior` multiplies what it covers.

    `tokens` include the mark of a gap. The first chosen of a `group` (a message) costs its `label` too.
    """

    tokens: int
    prior: float
    group: int
    label: int
    leans_on: tuple[int, ...] = ()


class Chooser:
    """One choice. `chosen` grows in greedy order, so that any prefix of it is a choice for a smaller budget.

    `steps` are the same in what was chosen together, `spent` the tokens that all of it costs.
    """

    def __init__(self, candidates: Sequence[Candidate], features: Features) -> None:
        self.candidates, self.features = candidates, features
        self.chosen: list[int] = []
        self.steps: list[tuple[int, ...]] = []
        self.spent = 0
        # The innermost loops only look up: what they need of each candidate stands in lists of its own.
        self._tokens = [one.tokens for one in candidates]
        self._labels = [one.label for one in candidates]
        self._group_of = [one.group for one in candidates]
        self._priors = [one.prior for one in candidates]
        self._leans = [one.leans_on for one in candidates]
        self._taken = bytearray(len(candidates))
        self._groups: set[int] = set()
        # What a feature adds if it is said once more, and how often it stands.
        self._gains = list(features.weights)
        self._gain, self._each = self._gains.__getitem__, features.each
        self._times = [0] * len(features.weights)
        # Who leans, and on whom.
        self._leaners = np.array([at for at, leans in enumerate(self._leans) for _ in leans], dtype=np.intp)
        self._leant_on = np.array([lean for leans in self._leans for lean in leans], dtype=np.intp)
        self._first_costs = self._costs()
        # What each adds, as last computed. It never grows, so it is a bound until it is computed again.
        self._worths = [own * one.prior for own, one in zip(features.own, candidates, strict=True)]
        # Closed gaps by chunk.
        self._joins = bytearray(len(candidates))

    def _costs(self) -> NDArray[np.float64]:
        """The tokens of each while nothing stands, with what it leans on."""
        tokens, labels, groups = (np.array(each) for each in (self._tokens, self._labels, self._group_of))
        more = tokens[self._leant_on]
        more += np.where(groups[self._leant_on] == groups[self._leaners], 0, labels[self._leant_on])
        beside = np.bincount(self._leaners, more, len(tokens))
        return np.maximum(1, tokens + labels + beside)

    def cost(self, places: Iterable[int]) -> int:
        """The tokens of these of one group, none of which stands."""
        found = [self.candidates[at] for at in places]
        return sum(one.tokens for one in found) + found[0].label

    def take(self, places: Iterable[int]) -> None:
        """Choose these whatever they add, in this order."""
        for at in places:
            if not self._taken[at]:
                self._take(at, self._cost(at), [])

    def fill(self, places: Iterable[int], budget_tokens: int) -> None:
        """Choose of these, in this order, what fits in so many tokens more, whatever it adds; up to the first that
        does not."""
        for at in places:
            if self._taken[at]:
                continue
            cost = self._cost(at)
            budget_tokens -= cost
            if budget_tokens < 0:
                return
            self._take(at, cost, [])

    def choose(self, budget_tokens: int, among: Collection[int] | None = None) -> list[int]:
        """All that is chosen, with the best of these, or of everything, within so many tokens more."""
        rates = self._first_rates()
        places = range(len(self.candidates)) if among is None else among
        heap = [(-rates[at], at) for at in places if not self._taken[at]]
        heapq.heapify(heap)
        misses = 0
        while heap and misses < MOST_MISSES:
            _, at = heapq.heappop(heap)
            if self._taken[at]:
                continue
            if (cost := self._cost(at)) > budget_tokens:
                misses += 1
                continue
            rate = self._rate(at, cost, self._worth)
            if heap and rate < -heap[0][0] - 1e-12:
                heapq.heappush(heap, (-rate, at))
            elif rate > 0:
                budget_tokens -= cost
                self._take(at, cost, heap)
        return self.chosen

    def _first_rates(self) -> list[float]:
        """What each adds for its tokens while nothing stands: `_rate`, without all that it looks up."""
        worths = np.array(self._worths)
        np.add.at(worths, self._leaners, worths[self._leant_on])
        rates: list[float] = (worths / self._first_costs).tolist()
        return rates

    def _beside(self, at: int) -> Iterator[int]:
        """The chunks right before and after it in the same message, not taken yet."""
        group = self._group_of[at]
        for one in (at - 1, at + 1):
            if 0 <= one < len(self._taken) and not self._taken[one] and self._group_of[one] == group:
                yield one

    def _cost(self, at: int) -> int:
        """Its tokens, with what it leans on and does not stand yet."""
        group, groups = self._group_of[at], self._groups
        cost = self._tokens[at] + (-GAP_TOKENS * self._joins[at] if group in groups else self._labels[at])
        for lean in self._leans[at]:
            if not self._taken[lean]:
                other = self._group_of[lean]
                cost += self._tokens[lean] + (0 if other in groups or other == group else self._labels[lean])
        return cost if cost > 1 else 1

    def _rate(self, at: int, cost: int, worth_of: Callable[[int], float]) -> float:
        """What it adds for each of these tokens, with what it leans on."""
        worth = worth_of(at)
        for lean in self._leans[at]:
            if not self._taken[lean]:
                worth += worth_of(lean)
        return worth * (1 + JOIN * self._joins[at]) / cost

    def _worth(self, at: int) -> float:
        worth = self._worths[at] = sum(map(self._gain, self._each[at])) * self._priors[at]
        return worth

    def _take(self, at: int, cost: int, heap: list[tuple[float, int]]) -> None:
        """Choose it with what it leans on; their neighbours are worth more from now on."""
        step = tuple(dict.fromkeys([*(lean for lean in self._leans[at] if not self._taken[lean]), at]))
        self.steps.append(step)
        self.spent += cost
        for one in step:
            self.chosen.append(one)
            self._taken[one] = 1
            self._groups.add(self._group_of[one])
            self._said(self.features.each[one])
            for beside in self._beside(one):
                self._joins[beside] += 1
                bound = self._rate(beside, self._cost(beside), self._worths.__getitem__)
                heapq.heappush(heap, (-bound, beside))

    def _said(self, keys: Iterable[int]) -> None:
        """These stand once more: said again they add less."""
        times, gains, weights, most = self._times, self._gains, self.features.weights, len(DIMINISHING)
        for key in keys:
            if times[key] < most:
                times[key] = said = times[key] + 1
                gains[key] = weights[key] * _ADDS[said]
