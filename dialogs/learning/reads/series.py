"""Whose numbers Insights show (`Scope`); the points of the chart of one agent with one LLM (measured prompt tokens,
limits in force, compactions); and the patterns of the last day.

A chart has a bounded number of points. Few rows are drawn one by one; of many, the maximum of each ten minutes, hour or
day is drawn. Rows are grouped by the first letters of their time as UTC text, which works in both databases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any, TypeVar, cast

from django.db.models import CharField, Count, F, Max, Model, QuerySet
from django.db.models.functions import Cast, Substr

from dialogs.compaction.reads.compaction import BY_THE_GUARD
from dialogs.llms.guard import guard_of
from dialogs.models import LLM, Agent, Dialog
from health.critic.replay import COHERENCE_DROP, LEAST, LEAST_COHERENCE, WINDOW, Finding, frequent
from health.models import CompactionRun, ContextEvent, HealthReading, Proposal

Row = TypeVar("Row", bound=Model)
BEGINNING = datetime(2000, 1, 1, tzinfo=UTC)
A_DAY = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class Scope:
    """A filter of events, runs and readings; a field that is None filters nothing."""

    owner_id: int | None = None
    agent_id: int | None = None
    llm_id: int | None = None
    since: datetime | None = None

    def of(self, *, agent_id: int, llm_id: int) -> Scope:
        return replace(self, agent_id=agent_id, llm_id=llm_id)

    def events(self) -> QuerySet[ContextEvent]:
        rows = ContextEvent.objects.order_by()
        return self._cut(rows, owner="owner", agent="agent", llm="llm", when="happened_at")

    def runs(self) -> QuerySet[CompactionRun]:
        """A run counts for the agent and LLM that its dialog has now."""
        rows = CompactionRun.objects.order_by()
        return self._cut(rows, owner="dialog__owner", agent="dialog__agent", llm="dialog__llm", when="queued_at")

    def readings(self) -> QuerySet[HealthReading]:
        """Without those of providers that report no usage."""
        rows = HealthReading.objects.filter(prompt_tokens__isnull=False).order_by()
        dialog = "generation__dialog"
        if self.since:
            # Skips dialogs that were at rest since then. A day more, since the reading may be later: no turn takes a
            # day.
            rows = rows.filter(generation__dialog__active_at__gte=self.since - A_DAY)
        return self._cut(
            rows, owner=f"{dialog}__owner", agent=f"{dialog}__agent", llm="generation__llm", when="read_at"
        )

    def _cut(self, rows: QuerySet[Row], *, owner: str, agent: str, llm: str, when: str) -> QuerySet[Row]:
        wanted: dict[str, Any] = {
            owner: self.owner_id,
            agent: self.agent_id,
            # Always filtered by time: else SQLite chooses an index that lacks columns which are counted.
            f"{when}__gte": self.since or BEGINNING,
        }
        if self.llm_id is not None:
            # `+ 0` keeps SQLite from the index on the LLM: one LLM has most of the rows.
            rows = cast("QuerySet[Row]", rows.alias(the_llm=F(llm) + 0).filter(the_llm=self.llm_id))
        return rows.filter(**{name: value for name, value in wanted.items() if value is not None})


MOST_POINTS, MOST_MARKS = 60, 40
# For a span up to this: rows are grouped by so many letters of "2026-11-22 01:30" (15: ten minutes, 13: an hour).
LETTERS = ((timedelta(days=1), 15), (timedelta(days=8), 13))
LETTERS_OF_A_DAY = 10
Status = CompactionRun.Status
# Events of the guard, which record the limit in force; other events record only a target.
TELL_LIMITS = (ContextEvent.Code.WARNING, ContextEvent.Code.OVER_HIT)


@dataclass(frozen=True, kw_only=True)
class Point:
    """`values` are the maxima of `count` rows; `at` is the time of the first."""

    at: datetime
    count: int
    values: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Series:
    """`tokens` (value: prompt tokens) were measured, `marks` (before, after) are estimates of compactions."""

    start: datetime
    end: datetime
    tokens: tuple[Point, ...] = ()
    limits: tuple[Point, ...] = ()
    marks: tuple[Point, ...] = ()


def series(scope: Scope, *, agent: Agent, llm: LLM, now: datetime) -> Series:
    one = scope.of(agent_id=agent.pk, llm_id=llm.pk)
    letters = _letters(now - one.since if one.since else None)
    tokens = _points(one.readings(), "read_at", "prompt_tokens", letters=letters, most=MOST_POINTS)
    made = one.runs().filter(finished_at__isnull=False)
    applied = made.filter(status__in=(Status.APPLIED, Status.UNDONE), estimated_after__isnull=False)
    marks = _points(applied, "finished_at", "estimated_before", "estimated_after", letters=letters, most=MOST_MARKS)
    guarded = made.filter(trigger__in=BY_THE_GUARD)
    events = one.events().filter(code__in=TELL_LIMITS, limit__isnull=False)
    limits = chain(
        _points(events, "happened_at", "limit", letters=letters, most=MOST_POINTS),
        _points(guarded, "finished_at", "limit_tokens", letters=letters, most=MOST_POINTS),
        _in_force(agent, llm, now),
    )
    drawn = (*tokens, *marks)
    return Series(
        # Only as wide as what is drawn: one day in a month would be a vertical line.
        start=min((point.at for point in drawn), default=one.since or now),
        end=max((point.at for point in drawn), default=now),
        tokens=tokens,
        limits=tuple(_steps(limits)),
        marks=marks,
    )


def _letters(span: timedelta | None) -> int:
    return next((letters for most, letters in LETTERS if span and span <= most), LETTERS_OF_A_DAY)


def _points(rows: QuerySet[Row], when: str, *columns: str, letters: int, most: int) -> tuple[Point, ...]:
    """The oldest first: each row where there are few, else the maximum of each stretch of time."""
    newest = list(rows.order_by(f"-{when}").values_list(when, *columns)[: most + 1])
    if len(newest) <= most:
        return tuple(Point(at=at, count=1, values=tuple(values)) for at, *values in reversed(newest))
    stretch = Substr(Cast(when, CharField()), 1, letters)
    grouped = rows.annotate(stretch=stretch).values_list("stretch")
    most_of = {f"most_{at}": Max(column) for at, column in enumerate(columns)}
    counted = grouped.annotate(count=Count("*"), **most_of).order_by("stretch")
    found = [Point(at=_moment(text), count=count, values=tuple(values)) for text, count, *values in counted]
    size = -(-len(found) // most)
    return tuple(_merged(found[start : start + size]) for start in range(0, len(found), size))


def _moment(text: str) -> datetime:
    """ "2026-11-22 01:3" -> half past one, in UTC."""
    return datetime.fromisoformat(text.replace("T", " ") + "2026-01-01 00:00"[len(text) :]).replace(tzinfo=UTC)


def _merged(points: Sequence[Point]) -> Point:
    most = (max(values) for values in zip(*(point.values for point in points), strict=True))
    return Point(at=points[0].at, count=sum(point.count for point in points), values=tuple(most))


def _in_force(agent: Agent, llm: LLM, now: datetime) -> Iterator[Point]:
    guard = guard_of(Dialog(agent=agent, llm=llm))
    if guard is not None:
        yield Point(at=now, count=1, values=(guard.limit,))


def _steps(limits: Iterable[Point]) -> Iterator[Point]:
    """The points at which the limit changes, and the last one."""
    ordered = sorted(limits, key=lambda point: point.at)
    for at, point in enumerate(ordered):
        if at in (0, len(ordered) - 1) or point.values != ordered[at - 1].values:
            yield point


MOST = 10


@dataclass(frozen=True, kw_only=True)
class Pattern:
    agent: Agent
    finding: Finding
    proposal_id: int | None = None

    @property
    def code(self) -> str:
        """The code of its events; empty for a drop in coherence, which is no event."""
        return "" if self.finding.code == COHERENCE_DROP else self.finding.code


def patterns(owner_id: int | None, *, now: datetime) -> list[Pattern]:
    """The patterns in the events of one person's dialogs, or of everybody's; the most frequent first."""
    found = frequent(_counted(Scope(owner_id=owner_id, since=now - WINDOW)))[:MOST]
    agents = Agent.objects.in_bulk({one.agent_id for one in found})
    waiting = Proposal.objects.filter(status=Proposal.Status.OPEN, agent__in=agents)
    proposals = dict(waiting.order_by("id").values_list("agent", "id")) if found else {}
    return [
        Pattern(agent=agents[one.agent_id], finding=one, proposal_id=proposals.get(one.agent_id))
        for one in found
        if one.agent_id in agents
    ]


def _counted(scope: Scope) -> Counter[tuple[int, str]]:
    events = scope.events().filter(code__in=LEAST).values_list("code", "agent")
    drops = scope.runs().filter(coherence__lt=LEAST_COHERENCE).values_list("dialog__agent")
    return Counter(
        {(agent, code): count for code, agent, count in events.annotate(count=Count("*")) if agent}
        | {(agent, COHERENCE_DROP): count for agent, count in drops.annotate(count=Count("*"))}
    )
