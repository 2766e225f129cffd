"""Whether another order of the chain earns more, for every LLM: there is one chain for all.

Only orders that were really in force can be judged; only one whose lower bound is above nothing is proposed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log

from health.critic.off_policy import LEAST_RUNS, Estimate, Logged, compare

CONFIDENCE = 0.95
Chain = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run that ended with a reward. `estimated` is before it."""

    llm: str
    chain: Chain
    limit: int
    estimated: int
    reward: float

    @property
    def logged(self) -> Logged:
        """Like with like: the same LLM, and about as much too much."""
        excess = self.estimated / max(1, self.limit)
        level = "over" if excess > 1 else "under"
        return Logged(
            stratum=f"{self.llm} {level}",
            features=(log(max(excess, 0.01)), log(max(1, self.limit))),
            action=",".join(self.chain),
            reward=self.reward,
        )


@dataclass(frozen=True, kw_only=True)
class ChainChange:
    before: Chain
    after: Chain
    gain: Estimate
    by_llm: Mapping[str, Estimate] = field(default_factory=dict)


def chain_change(runs: Sequence[Run], *, before: Chain) -> ChainChange | None:
    """The order with the best lower bound. None where the evidence is not enough for any, or one LLM is worse off.

    The more orders are compared, the surer each must be: else the best of many would look good by luck.
    """
    tried = Counter(run.chain for run in runs)
    others = [chain for chain, count in tried.items() if chain != before and count >= LEAST_RUNS]
    confidence = 1 - (1 - CONFIDENCE) / max(1, len(others))
    found = [change for chain in others if (change := _change(runs, before, chain, confidence))]
    better = [change for change in found if change.gain.lower > 0]
    better = [change for change in better if all(one.upper >= 0 for one in change.by_llm.values())]
    return max(better, key=lambda change: change.gain.lower, default=None)


def _change(runs: Sequence[Run], before: Chain, after: Chain, confidence: float) -> ChainChange | None:
    def compared(some: Sequence[Run]) -> Estimate | None:
        logged = [run.logged for run in some]
        return compare(logged, action=",".join(after), baseline=",".join(before), confidence=confidence)

    gain = compared(runs)
    llms = dict.fromkeys(run.llm for run in runs)
    of_each = {llm: compared([run for run in runs if run.llm == llm]) for llm in llms}
    by_llm = {llm: estimate for llm, estimate in of_each.items() if estimate}
    return ChainChange(before=before, after=after, gain=gain, by_llm=by_llm) if gain else None
