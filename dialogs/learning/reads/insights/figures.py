"""The table of figures: a row for each agent with its LLM, and one of them all. Added up by the database.

None is "nothing is known", which is not the same as none happened. Tokens of compactions are estimated, those of
readings were measured; the two never meet in one number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import Count, F, Max, Q, Sum

from dialogs.learning.reads.insights.scope import Scope
from dialogs.llms.guard import may_be_guarded
from dialogs.models import LLM, Agent, Dialog
from health.models import CompactionRun, ContextEvent

MOST_PAIRS = 20
Code, Status = ContextEvent.Code, CompactionRun.Status
# What only somebody who is guarded can have; a provider refuses prompts of anybody.
WATCHED = (Code.OVER_HIT, Code.WARNING)
COUNTED = (*WATCHED, Code.PROVIDER_OVERFLOW)
STATUS_WORDS = dict(Status.choices)
APPLIED = Q(status=Status.APPLIED)
Key = tuple[int | None, int | None]
# Fields of `Figures` by name, for each agent with its LLM.
Parts = dict[Key, dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Mean:
    """What so many numbers add up to."""

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
        """Whether a guard sees its requests, or did. Of one that none saw nobody knows how often it overflowed."""
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
        """In the order of a run's life, with the words for people."""
        return [(str(word), self.runs[name]) for name, word in STATUS_WORDS.items() if self.runs.get(name)]

    def _happened(self, code: str) -> int | None:
        return self.events.get(code, 0) if self.is_watched else None


@dataclass(frozen=True, kw_only=True)
class Pair:
    """An agent with an LLM. One that was deleted since has no name, and no chart."""

    agent: Agent | None
    llm: LLM | None
    figures: Figures

    @property
    def key(self) -> Key:
        return (self.agent.pk if self.agent else None, self.llm.pk if self.llm else None)


@dataclass(frozen=True, kw_only=True)
class Table:
    """`left_out` are pairs beyond the most that are shown; they count in the total."""

    pairs: tuple[Pair, ...]
    total: Figures
    left_out: int = 0


def table(scope: Scope) -> Table:
    """The readings, events and runs of each agent and LLM: those in most trouble first, then the most used."""
    parts: defaultdict[Key, dict[str, Any]] = defaultdict(dict)
    for found in (_readings(scope), _events(scope), _runs(scope)):
        for key, values in found.items():
            parts[key] |= values
    rows = [(key, Figures(**values)) for key, values in parts.items()]
    rows.sort(key=lambda row: (-row[1].trouble, -row[1].generations))
    pairs = tuple(_named(rows[:MOST_PAIRS]))
    left_out = (figures for _key, figures in rows[MOST_PAIRS:])
    return Table(
        pairs=pairs,
        total=_total([*(pair.figures for pair in pairs), *left_out]),
        left_out=max(0, len(rows) - MOST_PAIRS),
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
    found: defaultdict[str, int] = defaultdict(int)
    for one in counts:
        for name, count in one.items():
            found[name] += count
    return dict(found)


def _named(found: Iterable[tuple[Key, Figures]]) -> Iterable[Pair]:
    """Counted by key first: many rows are slow to group by names. Who is guarded now is known with the names."""
    found = tuple(found)
    agents = Agent.objects.in_bulk({agent for (agent, _llm), _figures in found if agent})
    llms = LLM.objects.select_related("provider").in_bulk({llm for (_agent, llm), _figures in found if llm})
    for (agent_id, llm_id), figures in found:
        agent, llm = agents.get(agent_id or 0), llms.get(llm_id or 0)
        is_guarded = bool(agent and llm and may_be_guarded(Dialog(agent=agent, llm=llm)))
        yield Pair(agent=agent, llm=llm, figures=replace(figures, is_guarded=is_guarded))
