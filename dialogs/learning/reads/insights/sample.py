"""What only single runs can tell: the reward of each strategy, and how long compactions took. Of the newest runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from statistics import fmean, stdev
from typing import Any

from dialogs.learning.reads.insights.scope import Scope
from health.compaction.strategies import REGISTRY
from health.models import CompactionRun

MOST_RUNS = 300
Status = CompactionRun.Status
ENDED = (Status.APPLIED, Status.UNDONE, Status.SKIPPED, Status.FAILED, Status.CANCELLED)
# Nothing that stands behind a run's view, which may be long.
READ = ("dialog__agent", "dialog__llm", "reward", "steps")
Key = tuple[int | None, int | None]


@dataclass(frozen=True, kw_only=True)
class Took:
    """Seconds. Half of the runs took no longer than `half`, 95 of 100 no longer than `most`."""

    half: float
    most: float

    @classmethod
    def of(cls, seconds: Iterable[float]) -> Took | None:
        rising = sorted(seconds)
        return cls(half=_share(rising, 0.5), most=_share(rising, 0.95)) if rising else None


@dataclass(frozen=True, kw_only=True)
class Earned:
    """The rewards of the runs in which a strategy changed something; of one run there is no spread."""

    strategy: str
    runs: int
    mean: float
    spread: float | None


@dataclass(frozen=True, kw_only=True)
class Sample:
    """`took` is by agent and LLM, `all_took` of all together."""

    runs: int
    took: Mapping[Key, Took | None] = field(default_factory=dict)
    all_took: Took | None = None
    earned: tuple[Earned, ...] = ()


def sample(scope: Scope) -> Sample:
    """Steps are read here, since no two databases agree on how to look into them."""
    seconds: defaultdict[Key, list[float]] = defaultdict(list)
    rewards: defaultdict[str, list[float]] = defaultdict(list)
    rows = _newest(scope)
    for agent, llm, reward, steps in rows:
        if steps:
            seconds[agent, llm].append(_seconds(steps))
        for name in _at_work(steps) if reward is not None else ():
            rewards[name].append(reward)
    earned = (_earned(name, found) for name, found in rewards.items())
    return Sample(
        runs=len(rows),
        took={key: Took.of(found) for key, found in seconds.items()},
        all_took=Took.of(one for found in seconds.values() for one in found),
        earned=tuple(sorted(earned, key=lambda one: -one.runs)),
    )


def _newest(scope: Scope) -> list[tuple[Any, ...]]:
    """Which they are is in an index; only those are looked at."""
    ended = scope.runs().filter(status__in=ENDED).order_by("-queued_at", "-id")
    newest = CompactionRun.objects.filter(pk__in=ended.values("pk")[:MOST_RUNS]).order_by()
    return list(newest.values_list(*READ))


def _at_work(steps: Iterable[Mapping[str, Any]]) -> set[str]:
    """The strategies that changed something; detection, recovery and success are no strategies."""
    return {step["phase"] for step in steps if step.get("changed") and step["phase"] in REGISTRY}


def _earned(strategy: str, rewards: Sequence[float]) -> Earned:
    spread = stdev(rewards) if len(rewards) > 1 else None
    return Earned(strategy=strategy, runs=len(rewards), mean=fmean(rewards), spread=spread)


def _seconds(steps: Iterable[Mapping[str, Any]]) -> float:
    return sum(step["ms"] for step in steps) / 1000


def _share(rising: Sequence[float], share: float) -> float:
    """The nearest rank: a number that was really measured."""
    return rising[ceil(share * len(rising)) - 1]
