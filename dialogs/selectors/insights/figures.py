"""The table of figures: a row for each agent with its LLM, and one of them all. Added up by the database.

None is "nothing is known", which is not the same as none happened. Tokens of compactions are estimated, those of
readings were measured; the two never meet in one number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from django.db.models import Count, F, Max, Q, Sum

from dialogs.models import LLM, Agent
from dialogs.selectors.insights.scope import Scope
from health.models import CompactionRun, ContextEvent

MOST_PAIRS = 50
Code, Status = ContextEvent.Code, CompactionRun.Status
Key = tuple[int | None, int | None]
APPLIED = Q(status=Status.APPLIED)


@dataclass(frozen=True, kw_only=True)
class Mean:
    """What so many numbers add up to. Added to another it is the mean of both."""

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

    def __add__(self, other: Figures) -> Figures:
        return Figures(**{one.name: _joined(one.name, self, other) for one in fields(self)})

    @property
    def is_watched(self) -> bool:
        """Where nobody is guarded nothing is recorded, and then nobody knows how often it happened."""
        return bool(self.events or self.runs)

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
    def overflows(self) -> int | None:
        return self._happened(Code.PROVIDER_OVERFLOW)

    @property
    def saved_tokens(self) -> int | None:
        return self.saved if self.runs.get(Status.APPLIED) else None

    @property
    def statuses(self) -> list[tuple[str, int]]:
        """In the order of a run's life, with the words for people."""
        return [(str(Status(name).label), self.runs[name]) for name in Status.values if self.runs.get(name)]

    def _happened(self, code: str) -> int | None:
        return self.events.get(code, 0) if self.is_watched else None


def _joined(name: str, one: Figures, other: Figures) -> Any:
    left, right = getattr(one, name), getattr(other, name)
    if isinstance(left, Mapping):
        return {key: left.get(key, 0) + right.get(key, 0) for key in {**left, **right}}
    return max(left, right) if name == "highest" else left + right


@dataclass(frozen=True, kw_only=True)
class Pair:
    """An agent with an LLM. One that was deleted since has no name, and no chart."""

    agent: Agent | None
    llm: LLM | None
    figures: Figures


@dataclass(frozen=True, kw_only=True)
class Table:
    """`left_out` are pairs beyond the most that are shown; they count in the total."""

    pairs: tuple[Pair, ...]
    total: Figures
    left_out: int = 0


def table(scope: Scope) -> Table:
    """Where most went wrong or was compacted stands first, then who was used most."""
    found: defaultdict[Key, Figures] = defaultdict(Figures)
    for key, figures in (*_readings(scope), *_events(scope), *_runs(scope)):
        found[key] += figures
    ordered = sorted(found.items(), key=lambda one: (-one[1].trouble, -one[1].generations))
    return Table(
        pairs=tuple(_named(ordered[:MOST_PAIRS])),
        total=sum(found.values(), start=Figures()),
        left_out=max(0, len(ordered) - MOST_PAIRS),
    )


def _readings(scope: Scope) -> Iterable[tuple[Key, Figures]]:
    rows = scope.readings().values_list("generation__dialog__agent", "generation__llm")
    for agent, llm, count, highest in rows.annotate(count=Count("*"), highest=Max("prompt_tokens")):
        yield (agent, llm), Figures(generations=count, highest=highest)


def _events(scope: Scope) -> Iterable[tuple[Key, Figures]]:
    for agent, llm, code, count in scope.events().values_list("agent", "llm", "code").annotate(count=Count("*")):
        yield (agent, llm), Figures(events={code: count})


def _runs(scope: Scope) -> Iterable[tuple[Key, Figures]]:
    rows = (
        scope.runs()
        .values("dialog__agent", "dialog__llm", "status")
        .annotate(
            count=Count("*"),
            rewards=Count("reward"),
            reward_sum=Sum("reward"),
            coherences=Count("coherence"),
            coherence_sum=Sum("coherence"),
            saved=Sum(F("estimated_before") - F("estimated_after"), filter=APPLIED),
        )
    )
    for row in rows:
        yield (
            (row["dialog__agent"], row["dialog__llm"]),
            Figures(
                runs={row["status"]: row["count"]},
                reward=Mean(total=row["reward_sum"] or 0.0, count=row["rewards"]),
                coherence=Mean(total=row["coherence_sum"] or 0.0, count=row["coherences"]),
                saved=row["saved"] or 0,
            ),
        )


def _named(found: Iterable[tuple[Key, Figures]]) -> Iterable[Pair]:
    """Counted by key first: many rows are slow to group by names."""
    found = tuple(found)
    agents = Agent.objects.in_bulk({agent for (agent, _llm), _figures in found if agent})
    llms = LLM.objects.select_related("provider").in_bulk({llm for (_agent, llm), _figures in found if llm})
    for (agent, llm), figures in found:
        yield Pair(agent=agents.get(agent or 0), llm=llms.get(llm or 0), figures=figures)
