"""The table of Insights: a row for each agent with its LLM, and a total, added up by the database. Of the newest runs,
read one by one: the reward of each strategy, and how long compactions took. Of each LLM: the error of the estimates.

None means "unknown", zero means "none happened". Tokens of compactions are estimated, those of readings were measured;
no number mixes the two.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from statistics import fmean, stdev
from typing import Any

from django.db.models import Count, F, Max, Q, Sum

from dialogs.learning.reads.series import Scope
from dialogs.llms.guard import may_be_guarded
from dialogs.models import LLM, Agent, Dialog
from health.compaction.strategies import REGISTRY
from health.models import CompactionRun, ContextEvent, LlmCalibration
from health.tokens.calibration import Calibration

MOST_PAIRS = 20
Code, Status = ContextEvent.Code, CompactionRun.Status
# Events that only a guarded dialog can have. A provider may refuse any dialog's prompt.
WATCHED = (Code.OVER_HIT, Code.WARNING)
COUNTED = (*WATCHED, Code.PROVIDER_OVERFLOW)
STATUS_WORDS = dict(Status.choices)
APPLIED = Q(status=Status.APPLIED)
# An agent and an LLM.
Key = tuple[int | None, int | None]
# Fields of `Figures` by name, for each agent with its LLM.
Parts = dict[Key, dict[str, Any]]
# How many of the newest runs are read one by one, and which columns: none behind the view, which may be long.
MOST_RUNS = 300
ENDED = (Status.APPLIED, Status.UNDONE, Status.SKIPPED, Status.FAILED, Status.CANCELLED)
READ = ("dialog__agent", "dialog__llm", "reward", "steps")


@dataclass(frozen=True, kw_only=True)
class Mean:
    """A sum and its count, which give a mean and can be added."""

    total: float = 0.0
    count: int = 0

    @property
    def value(self) -> float | None:
        return self.total / self.count if self.count else None

    def __add__(self, other: Mean) -> Mean:
        return Mean(total=self.total + other.total, count=self.count + other.count)


@dataclass(frozen=True, kw_only=True)
class Figures:
    """`generations` and `highest` are measured; `saved` is estimated. Codes and statuses are counted by name."""

    generations: int = 0
    highest: int = 0
    events: Mapping[str, int] = field(default_factory=dict)
    runs: Mapping[str, int] = field(default_factory=dict)
    reward: Mean = field(default_factory=Mean)
    coherence: Mean = field(default_factory=Mean)
    saved: int = 0
    is_guarded: bool = False

    @property
    def is_watched(self) -> bool:
        """Whether a guard counts its requests, or did. Without a guard the number of over-hits is unknown."""
        return self.is_guarded or any(code in self.events for code in WATCHED)

    @property
    def trouble(self) -> int:
        return sum(self.events.values()) + sum(self.runs.values())

    @property
    def over_hits(self) -> int | None:
        return self._happened(Code.OVER_HIT)

    @property
    def warnings(self) -> int | None:
        return self._happened(Code.WARNING)

    @property
    def overflows(self) -> int:
        return self.events.get(Code.PROVIDER_OVERFLOW, 0)

    @property
    def saved_tokens(self) -> int | None:
        return self.saved if self.runs.get(Status.APPLIED) else None

    @property
    def statuses(self) -> list[tuple[str, int]]:
        """How many runs ended in each status, in the order of a run's life, with the words for people."""
        return [(str(word), self.runs[name]) for name, word in STATUS_WORDS.items() if self.runs.get(name)]

    def _happened(self, code: str) -> int | None:
        return self.events.get(code, 0) if self.is_watched else None


@dataclass(frozen=True, kw_only=True)
class Row:
    """The numbers of an agent with an LLM, of which one that was deleted since has no name; or of all (`is_total`)."""

    figures: Figures
    agent: Agent | None = None
    llm: LLM | None = None
    took: Durations | None = None
    estimate_error: EstimateError | None = None
    is_total: bool = False


@dataclass(frozen=True, kw_only=True)
class Table:
    """`left_out`: how many pairs are not shown; they count in the total. `sample`: the newest runs of all pairs."""

    pairs: tuple[Row, ...]
    total: Row
    left_out: int
    sample: RunSample


def table(scope: Scope) -> Table:
    """The readings, events and runs of each agent and LLM: those in most trouble first, then the most used."""
    parts: defaultdict[Key, dict[str, Any]] = defaultdict(dict)
    for found in (_readings(scope), _events(scope), _runs(scope)):
        for key, values in found.items():
            parts[key] |= values
    counted = [(key, Figures(**values)) for key, values in parts.items()]
    counted.sort(key=lambda pair: (-pair[1].trouble, -pair[1].generations))
    runs = sample(scope)
    pairs = tuple(_rows(counted[:MOST_PAIRS], runs))
    every = [*(row.figures for row in pairs), *(figures for _key, figures in counted[MOST_PAIRS:])]
    return Table(
        pairs=pairs,
        total=Row(figures=_total(every), took=runs.all_took, is_total=True),
        left_out=max(0, len(counted) - MOST_PAIRS),
        sample=runs,
    )


def _readings(scope: Scope) -> Parts:
    rows = scope.readings().values_list("generation__dialog__agent", "generation__llm")
    counted = rows.annotate(count=Count("*"), highest=Max("prompt_tokens"))
    return {(agent, llm): {"generations": count, "highest": highest} for agent, llm, count, highest in counted}


def _events(scope: Scope) -> Parts:
    found: defaultdict[Key, dict[str, int]] = defaultdict(dict)
    rows = scope.events().filter(code__in=COUNTED).values_list("agent", "llm", "code")
    for agent, llm, code, count in rows.annotate(count=Count("*")):
        found[agent, llm][code] = count
    return {key: {"events": counts} for key, counts in found.items()}


def _runs(scope: Scope) -> Parts:
    found: defaultdict[Key, list[Mapping[str, Any]]] = defaultdict(list)
    rows = scope.runs().values("dialog__agent", "dialog__llm", "status")
    for row in rows.annotate(
        count=Count("*"),
        rewards=Count("reward"),
        reward_sum=Sum("reward"),
        coherences=Count("coherence"),
        coherence_sum=Sum("coherence"),
        saved=Sum(F("estimated_before") - F("estimated_after"), filter=APPLIED),
    ):
        found[row["dialog__agent"], row["dialog__llm"]].append(row)
    return {
        key: {
            "runs": {row["status"]: row["count"] for row in rows},
            "reward": _mean(rows, "reward"),
            "coherence": _mean(rows, "coherence"),
            "saved": sum(row["saved"] or 0 for row in rows),
        }
        for key, rows in found.items()
    }


def _mean(rows: Iterable[Mapping[str, Any]], name: str) -> Mean:
    return sum((Mean(total=row[f"{name}_sum"] or 0.0, count=row[f"{name}s"]) for row in rows), start=Mean())


def _total(every: Iterable[Figures]) -> Figures:
    every = tuple(every)
    return Figures(
        generations=sum(one.generations for one in every),
        highest=max((one.highest for one in every), default=0),
        events=_added(one.events for one in every),
        runs=_added(one.runs for one in every),
        reward=sum((one.reward for one in every), start=Mean()),
        coherence=sum((one.coherence for one in every), start=Mean()),
        saved=sum(one.saved for one in every),
        is_guarded=any(one.is_guarded for one in every),
    )


def _added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    return dict(sum(map(Counter, counts), start=Counter[str]()))


def _rows(found: Sequence[tuple[Key, Figures]], runs: RunSample) -> Iterator[Row]:
    """Add agent, LLM and whether they are guarded now. Grouping many rows by names would be slow, so keys come
    first."""
    agents = Agent.objects.in_bulk({agent for (agent, _llm), _figures in found if agent})
    llms = LLM.objects.select_related("provider").in_bulk({llm for (_agent, llm), _figures in found if llm})
    errors = estimate_errors(llms.values())
    for (agent_id, llm_id), figures in found:
        agent, llm = agents.get(agent_id or 0), llms.get(llm_id or 0)
        yield Row(
            agent=agent,
            llm=llm,
            figures=replace(figures, is_guarded=bool(agent and llm and may_be_guarded(Dialog(agent=agent, llm=llm)))),
            took=runs.took.get((agent_id, llm_id)),
            estimate_error=errors.get(llm_id or 0),
        )


@dataclass(frozen=True, kw_only=True)
class Durations:
    """Seconds that runs took: the median and the 95th percentile."""

    median: float
    p95: float

    @classmethod
    def of(cls, seconds: Iterable[float]) -> Durations | None:
        rising = sorted(seconds)
        return cls(median=_share(rising, 0.5), p95=_share(rising, 0.95)) if rising else None


@dataclass(frozen=True, kw_only=True)
class StrategyReward:
    """The rewards of the runs in which a strategy changed something; of one run there is no spread."""

    strategy: str
    runs: int
    mean: float
    spread: float | None


@dataclass(frozen=True, kw_only=True)
class RunSample:
    """`took` is by agent and LLM, `all_took` of all together."""

    runs: int
    took: Mapping[Key, Durations | None] = field(default_factory=dict)
    all_took: Durations | None = None
    earned: tuple[StrategyReward, ...] = ()


def sample(scope: Scope) -> RunSample:
    """Steps are JSON, so they are read in Python: each database queries JSON in another way."""
    seconds: defaultdict[Key, list[float]] = defaultdict(list)
    rewards: defaultdict[str, list[float]] = defaultdict(list)
    rows = _newest(scope)
    for agent, llm, reward, steps in rows:
        if steps:
            seconds[agent, llm].append(_seconds(steps))
        for name in _at_work(steps) if reward is not None else ():
            rewards[name].append(reward)
    earned = (_strategy_reward(name, found) for name, found in rewards.items())
    return RunSample(
        runs=len(rows),
        took={key: Durations.of(found) for key, found in seconds.items()},
        all_took=Durations.of(one for found in seconds.values() for one in found),
        earned=tuple(sorted(earned, key=lambda one: -one.runs)),
    )


def _newest(scope: Scope) -> list[tuple[Any, ...]]:
    """The newest ended runs: an index gives their keys, and only their rows are read."""
    ended = scope.runs().filter(status__in=ENDED).order_by("-queued_at", "-id")
    newest = CompactionRun.objects.filter(pk__in=ended.values("pk")[:MOST_RUNS]).order_by()
    return list(newest.values_list(*READ))


def _at_work(steps: Iterable[Mapping[str, Any]]) -> set[str]:
    """The strategies that changed something; detection, recovery and success are no strategies."""
    return {step["phase"] for step in steps if step.get("changed") and step["phase"] in REGISTRY}


def _strategy_reward(strategy: str, rewards: Sequence[float]) -> StrategyReward:
    spread = stdev(rewards) if len(rewards) > 1 else None
    return StrategyReward(strategy=strategy, runs=len(rewards), mean=fmean(rewards), spread=spread)


def _seconds(steps: Iterable[Mapping[str, Any]]) -> float:
    return sum(step["ms"] for step in steps) / 1000


def _share(rising: Sequence[float], share: float) -> float:
    """The nearest-rank percentile: always one of the measured numbers."""
    return rising[ceil(share * len(rising)) - 1]


@dataclass(frozen=True, kw_only=True)
class EstimateError:
    """Estimates for an LLM against its server's newest twenty reports, in per cent: mean absolute error, and bias
    (below zero: estimated too low)."""

    error: float
    bias: float
    reports: int

    @property
    def signed(self) -> str:
        """The bias with its sign; minus is U+2212."""
        return f"{self.bias:+.1f}".replace("-", "−")


def estimate_errors(llms: Collection[LLM]) -> dict[int, EstimateError]:
    """By the LLM's key; an LLM without reports is left out."""
    found = {row.llm_id: row.known for row in LlmCalibration.objects.filter(llm__in=llms)}
    return {
        key: EstimateError(error=known.error_percent, bias=known.bias_percent, reports=len(known.samples))
        for key, known in found.items()
        if isinstance(known, Calibration)
    }
