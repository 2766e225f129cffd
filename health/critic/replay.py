"""Replays uncompacted courses under another limit, proposes a limit, and finds patterns over events, such as over-hits
of one agent within a day.

All numbers are estimates. Unless the caller asks the engine, a compaction is assumed to reach the goal or what must
stay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import accumulate

from health.compaction.terms.pressure import tokens

WINDOW = timedelta(hours=24)
LEAST_COHERENCE = 0.65
TOKEN_LIMIT_EXCEEDED, OVER_HIT = "TOKEN_LIMIT_EXCEEDED", "OVER_HIT"
RECOVERY_TRIGGERED, COHERENCE_DROP = "RECOVERY_TRIGGERED", "COHERENCE_DROP"
PROVIDER_OVERFLOW, BREAKER_FAILED = "PROVIDER_OVERFLOW", "BREAKER_FAILED"
# The least events of each code within the window. OVER_HIT, PROVIDER_OVERFLOW and BREAKER_FAILED (too much must stay)
# are Dominds's own codes: with a working guard they are no errors.
LEAST: Mapping[str, int] = {
    TOKEN_LIMIT_EXCEEDED: 3,
    RECOVERY_TRIGGERED: 4,
    COHERENCE_DROP: 3,
    OVER_HIT: 3,
    PROVIDER_OVERFLOW: 3,
    BREAKER_FAILED: 3,
}


@dataclass(frozen=True, kw_only=True)
class PastEvent:
    """An event by its code; COHERENCE_DROP is a compaction whose coherence was below `LEAST_COHERENCE`."""

    code: str
    agent_id: int
    at: datetime


@dataclass(frozen=True, kw_only=True)
class Finding:
    """`count` events of one code, of one agent, within the window."""

    code: str
    agent_id: int
    count: int


def findings(happened: Iterable[PastEvent], *, now: datetime) -> tuple[Finding, ...]:
    """The most frequent first. Events before the window or in the future do not count."""
    return frequent(Counter((one.agent_id, one.code) for one in happened if now - WINDOW < one.at <= now))


def frequent(counts: Counter[tuple[int, str]]) -> tuple[Finding, ...]:
    """The events that are frequent enough to report, the most frequent first. `counts` is by agent and code."""
    return tuple(
        Finding(code=code, agent_id=agent_id, count=count)
        for (agent_id, code), count in counts.most_common()
        if count >= LEAST.get(code, count + 1)
    )


@dataclass(frozen=True, kw_only=True)
class Growth:
    """One course in tokens. `base` is part of every request: instructions, tools, the answer's reserve.

    `reserve` is the part of `base` that counts as used but is not sent. `asks` says for each message whether a request
    follows it, as after a person's message or a tool's results.
    """

    base: int
    sizes: tuple[int, ...]
    asks: tuple[bool, ...]
    reserve: int = 0

    @property
    def totals(self) -> tuple[int, ...]:
        """The total tokens before any message, then after each."""
        return tuple(accumulate(self.sizes, initial=self.base))

    def begins_at(self, above: int) -> int | None:
        """The number of messages with which the total is first above that, may be 0; None if it never is."""
        return next((at for at, total in enumerate(self.totals) if total > above), None)


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Compaction begins above `threshold` of the limit and ends at `goal` of it."""

    limit: int
    threshold: float = 0.8
    goal: float = 0.7


@dataclass(frozen=True, kw_only=True)
class ReplayTotals:
    """`over_hits` are requests above the limit before a compaction, `failures` those still above it afterwards."""

    requests: int = 0
    over_hits: int = 0
    failures: int = 0
    compactions: int = 0
    tokens_sent: int = 0
    tokens_removed: int = 0

    def __add__(self, other: ReplayTotals) -> ReplayTotals:
        return ReplayTotals(**{name: value + getattr(other, name) for name, value in vars(self).items()})


# (message index, tokens) -> the tokens after a compaction before the request at that message.
Compacted = Callable[[int, int], int]


def replay(growths: Iterable[Growth], rules: Rules) -> ReplayTotals:
    return sum((gone_through(one, rules, to_the_goal(one, rules)) for one in growths), start=ReplayTotals())


def to_the_goal(growth: Growth, rules: Rules) -> Compacted:
    """A compaction down to the goal; the last message and the base always stay."""
    goal = tokens(rules.goal, rules.limit)
    return lambda at, total: min(total, max(goal, growth.base + growth.sizes[at]))


def gone_through(growth: Growth, rules: Rules, compacted: Compacted) -> ReplayTotals:
    trigger = tokens(rules.threshold, rules.limit)
    total, found = growth.base, ReplayTotals()
    for at, (size, asks) in enumerate(zip(growth.sizes, growth.asks, strict=True)):
        total += size
        if not asks:
            continue
        before = total
        if total > trigger:
            total = compacted(at, total)
        found += ReplayTotals(
            requests=1,
            over_hits=before > rules.limit,
            failures=total > rules.limit,
            compactions=before > trigger,
            tokens_sent=total - growth.reserve,
            tokens_removed=before - total,
        )
    return found


# The factor between two candidates, and the number they are rounded to.
STEP, ROUND = 1.08, 100
# The proposed limit is the smallest that avoids the first share of the trouble; else the best, if it avoids the second.
ENOUGH, WORTH = 0.8, 0.5
LEAST_TROUBLE = 3


@dataclass(frozen=True, kw_only=True)
class Subject:
    """An agent and its newest courses. `limit` is its setting, which for a P1 agent is multiplied by `factor`.

    `cap` is the window less the answer's reserve: a limit in force above it is never proposed.
    """

    agent_id: int
    limit: int
    cap: int | None
    rules: Rules
    factor: float = 1.0
    growths: tuple[Growth, ...] = ()

    def under(self, limit: int) -> Rules:
        in_force = int(limit * self.factor)
        return replace(self.rules, limit=min(in_force, self.cap) if self.cap else in_force)

    @property
    def most(self) -> int:
        """The highest setting that the window does not cap; 0 if unknown."""
        return int(self.cap / self.factor) // ROUND * ROUND if self.cap else 0


@dataclass(frozen=True, kw_only=True)
class LimitChange:
    """`now` and `then` are the replay of the same courses under both limits."""

    agent_id: int
    before: int
    after: int
    now: ReplayTotals
    then: ReplayTotals


def limit_change(subject: Subject, found: Collection[Finding]) -> LimitChange | None:
    """None if there are no events that a higher limit avoids, too few courses, or no limit helps enough."""
    found = [one for one in found if one.code != PROVIDER_OVERFLOW]
    if not found:
        return None
    counts = "over_hits" if {one.code for one in found} & {OVER_HIT, TOKEN_LIMIT_EXCEEDED} else "compactions"
    now = replay(subject.growths, subject.under(subject.limit))
    trouble = getattr(now, counts)
    if trouble < LEAST_TROUBLE:
        return None
    best: LimitChange | None = None
    for limit in candidates(subject):
        then = replay(subject.growths, subject.under(limit))
        left = getattr(then, counts)
        if left <= trouble * (1 - WORTH) and (best is None or left < getattr(best.then, counts)):
            best = LimitChange(agent_id=subject.agent_id, before=subject.limit, after=limit, now=now, then=then)
        if left <= trouble * (1 - ENOUGH):
            break
    return best


def candidates(subject: Subject) -> Iterator[int]:
    """Limits from just above the present one up to and including the highest that the window allows."""
    limit = float(subject.limit)
    while (limit := limit * STEP) < subject.most:
        yield min(-int(-limit // ROUND) * ROUND, subject.most)
    if subject.most > subject.limit:
        yield subject.most
