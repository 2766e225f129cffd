"""What another order of the chain would have earned, judged by runs that were made with both: doubly robust.

The order is not drawn by lot: it changes only when a person changes the settings. So a run's propensity is the share
of its order among the runs of its stratum (LLM and pressure), strata without both orders say nothing, and the answer
holds only as far as nothing else changed with the order. Decision 25 tells why this is no library.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
# Of each order: fewer in all, or in a stratum, are no evidence.
LEAST_RUNS, LEAST_IN_STRATUM = 30, 5
RIDGE = 1.0
FOLDS = 2


@dataclass(frozen=True, kw_only=True)
class Logged:
    """One run: where it was made, what is known of its context, what was done, what it earned."""

    stratum: str
    features: tuple[float, ...]
    action: str
    reward: float


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """How much more `action` earns than `baseline` in a run, with the bounds of its confidence interval."""

    difference: float
    lower: float
    upper: float
    runs: int
    runs_of_baseline: int


def compare(logged: Sequence[Logged], *, action: str, baseline: str, confidence: float = 0.95) -> Estimate | None:
    """None where the evidence is not enough: too few runs of either order under like circumstances."""
    runs = _overlapping(logged, action, baseline)
    took = np.array([run.action == action for run in runs])
    if not runs or min(took.sum(), (~took).sum()) < LEAST_RUNS:
        return None
    rewards = np.array([run.reward for run in runs], dtype=np.float64)
    share = _shares(runs, took)
    features = np.array([(1.0, *run.features) for run in runs], dtype=np.float64)
    # Folds are dealt within each order: runs that alternate would else leave a fold without one.
    fold = np.where(took, took.cumsum(), (~took).cumsum()) % FOLDS
    with_it, without = (_expected(features, rewards, chose, fold) for chose in (took, ~took))
    # The model's guess for every run, corrected by what the runs that took it really earned.
    gains = with_it - without + took * (rewards - with_it) / share - ~took * (rewards - without) / (1 - share)
    mean, error = float(gains.mean()), float(gains.std(ddof=1) / np.sqrt(len(runs)))
    margin = NormalDist().inv_cdf((1 + confidence) / 2) * error
    return Estimate(
        difference=mean,
        lower=mean - margin,
        upper=mean + margin,
        runs=int(took.sum()),
        runs_of_baseline=int((~took).sum()),
    )


def _overlapping(logged: Sequence[Logged], *actions: str) -> list[Logged]:
    """Runs of both, from strata in which both were made often enough."""
    counts: defaultdict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(actions, 0))
    for run in logged:
        if run.action in actions:
            counts[run.stratum][run.action] += 1
    both = {stratum for stratum, of in counts.items() if min(of.values()) >= LEAST_IN_STRATUM}
    return [run for run in logged if run.action in actions and run.stratum in both]


def _shares(runs: Sequence[Logged], took: NDArray[np.bool_]) -> Vector:
    """The propensity of each run: how often the order was taken in its stratum."""
    strata = np.array([run.stratum for run in runs])
    return np.array([took[strata == stratum].mean() for stratum in strata], dtype=np.float64)


def _expected(features: Vector, rewards: Vector, chose: NDArray[np.bool_], fold: NDArray[np.int_]) -> Vector:
    """The reward that a ridge regression expects of every run under one order; never fitted on the run itself."""
    expected = np.empty(len(rewards))
    for held in (fold == number for number in range(FOLDS)):
        known, worth = features[chose & ~held], rewards[chose & ~held]
        penalty = RIDGE * np.eye(features.shape[1])
        penalty[0, 0] = 1e-9
        expected[held] = features[held] @ np.linalg.solve(known.T @ known + penalty, known.T @ worth)
    return expected
