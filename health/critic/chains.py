"""Estimates whether another order of the chain earns more, over all LLMs, as there is one chain for all. Only orders
that were in force can be judged; only one whose lower bound is above zero is proposed.

Two orders are compared by a doubly robust estimate over the runs made with either. The order is not random: it changes
only when a person changes the settings. So a run's propensity is the share of its order among the runs of its stratum
(LLM and pressure), strata without both orders are left out, and the result is valid only if nothing else changed with
the order. Decision 25 says why no library is used.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
# The least runs of an order in all, and in a stratum.
LEAST_RUNS, LEAST_IN_STRATUM = 30, 5
RIDGE = 1.0
FOLDS = 2
CONFIDENCE = 0.95
Chain = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class LoggedRun:
    """One run: its stratum, features of its context, the order that was used, and its reward."""

    stratum: str
    features: tuple[float, ...]
    action: str
    reward: float


@dataclass(frozen=True, kw_only=True)
class GainEstimate:
    """How much more `action` earns than `baseline` in a run, with the bounds of its confidence interval."""

    difference: float
    lower: float
    upper: float
    runs: int
    runs_of_baseline: int


def compare(
    logged: Sequence[LoggedRun], *, action: str, baseline: str, confidence: float = 0.95
) -> GainEstimate | None:
    """Compare two orders; None if either has too few runs under like circumstances."""
    runs = _overlapping(logged, action, baseline)
    took = np.array([run.action == action for run in runs])
    if not runs or min(took.sum(), (~took).sum()) < LEAST_RUNS:
        return None
    rewards = np.array([run.reward for run in runs], dtype=np.float64)
    share = _shares(runs, took)
    features = np.array([(1.0, *run.features) for run in runs], dtype=np.float64)
    # Folds are assigned within each order: if orders alternate, a fold might else lack one.
    fold = np.where(took, took.cumsum(), (~took).cumsum()) % FOLDS
    with_it, without = (_expected(features, rewards, chose, fold) for chose in (took, ~took))
    # The model's prediction for every run, corrected by the rewards of the runs with that order.
    gains = with_it - without + took * (rewards - with_it) / share - ~took * (rewards - without) / (1 - share)
    mean, error = float(gains.mean()), float(gains.std(ddof=1) / np.sqrt(len(runs)))
    margin = NormalDist().inv_cdf((1 + confidence) / 2) * error
    return GainEstimate(
        difference=mean,
        lower=mean - margin,
        upper=mean + margin,
        runs=int(took.sum()),
        runs_of_baseline=int((~took).sum()),
    )


def _overlapping(logged: Sequence[LoggedRun], *actions: str) -> list[LoggedRun]:
    """The runs of both orders, from strata that have enough of each."""
    counts: defaultdict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(actions, 0))
    for run in logged:
        if run.action in actions:
            counts[run.stratum][run.action] += 1
    both = {stratum for stratum, of in counts.items() if min(of.values()) >= LEAST_IN_STRATUM}
    return [run for run in logged if run.action in actions and run.stratum in both]


def _shares(runs: Sequence[LoggedRun], took: NDArray[np.bool_]) -> Vector:
    """The propensity of each run: the share of the order in its stratum."""
    strata = np.array([run.stratum for run in runs])
    return np.array([took[strata == stratum].mean() for stratum in strata], dtype=np.float64)


def _expected(features: Vector, rewards: Vector, chose: NDArray[np.bool_], fold: NDArray[np.int_]) -> Vector:
    """The reward of every run under one order, by a ridge regression that was not fitted on the run itself."""
    expected = np.empty(len(rewards))
    for held in (fold == number for number in range(FOLDS)):
        known, worth = features[chose & ~held], rewards[chose & ~held]
        penalty = RIDGE * np.eye(features.shape[1])
        penalty[0, 0] = 1e-9
        expected[held] = features[held] @ np.linalg.solve(known.T @ known + penalty, known.T @ worth)
    return expected


@dataclass(frozen=True, kw_only=True)
class RewardedRun:
    """A run that ended with a reward. `estimated` are the tokens before it."""

    llm: str
    chain: Chain
    limit: int
    estimated: int
    reward: float

    @property
    def logged(self) -> LoggedRun:
        """The run as `compare` needs it. Its stratum is the LLM, and whether it was over the limit."""
        excess = self.estimated / max(1, self.limit)
        level = "over" if excess > 1 else "under"
        return LoggedRun(
            stratum=f"{self.llm} {level}",
            features=(log(max(excess, 0.01)), log(max(1, self.limit))),
            action=",".join(self.chain),
            reward=self.reward,
        )


@dataclass(frozen=True, kw_only=True)
class ChainChange:
    before: Chain
    after: Chain
    gain: GainEstimate
    by_llm: Mapping[str, GainEstimate] = field(default_factory=dict)


def chain_change(runs: Sequence[RewardedRun], *, before: Chain) -> ChainChange | None:
    """The order with the best lower bound. None if the evidence is not enough for any, or if one LLM is worse off.

    The more orders are compared, the higher the confidence of each must be (a correction for multiple comparisons).
    """
    tried = Counter(run.chain for run in runs)
    others = [chain for chain, count in tried.items() if chain != before and count >= LEAST_RUNS]
    confidence = 1 - (1 - CONFIDENCE) / max(1, len(others))
    found = [change for chain in others if (change := _change(runs, before, chain, confidence))]
    better = [change for change in found if change.gain.lower > 0]
    better = [change for change in better if all(one.upper >= 0 for one in change.by_llm.values())]
    return max(better, key=lambda change: change.gain.lower, default=None)


def _change(runs: Sequence[RewardedRun], before: Chain, after: Chain, confidence: float) -> ChainChange | None:
    def compared(some: Sequence[RewardedRun]) -> GainEstimate | None:
        logged = [run.logged for run in some]
        return compare(logged, action=",".join(after), baseline=",".join(before), confidence=confidence)

    gain = compared(runs)
    llms = dict.fromkeys(run.llm for run in runs)
    of_each = {llm: compared([run for run in runs if run.llm == llm]) for llm in llms}
    by_llm = {llm: estimate for llm, estimate in of_each.items() if estimate}
    return ChainChange(before=before, after=after, gain=gain, by_llm=by_llm) if gain else None
