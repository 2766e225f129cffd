"""What would have happened: a course as it was said, gone through again under another limit; the limit to
propose; and patterns over events, such as over-hits of one agent within a day.

All numbers are estimates. A compaction is taken to reach the goal and no less than what must stay, unless the caller
has the engine itself to ask.
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
# So often within the window. The over-hits are ours: a guard that works lets an over-hit become no error. So are the
# refusals of providers, and compactions for which too much must stay.
LEAST: Mapping[str, int] = {
    TOKEN_LIMIT_EXCEEDED: 3,
    RECOVERY_TRIGGERED: 4,
    COHERENCE_DROP: 3,
    OVER_HIT: 3,
    PROVIDER_OVERFLOW: 3,
    BREAKER_FAILED: 3,
}


@dataclass(frozen=True, kw_only=True)
class Happened:
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


def findings(happened: Iterable[Happened], *, now: datetime) -> tuple[Finding, ...]:
    """The most frequent first. What is older than the window, or lies ahead, counts for nothing."""
    return frequent(Counter((one.agent_id, one.code) for one in happened if now - WINDOW < one.at <= now))


def frequent(counts: Counter[tuple[int, str]]) -> tuple[Finding, ...]:
    """The events that are frequent enough to tell, the most frequent first. `counts` is by agent and code."""
    return tuple(
        Finding(code=code, agent_id=agent_id, count=count)
        for (agent_id, code), count in counts.most_common()
        if count >= LEAST.get(code, count + 1)
    )


@dataclass(frozen=True, kw_only=True)
class Growth:
    """One course in tokens. `base` goes along with every request: instructions, tools, the answer's reserve.

    Of the base, `reserve` counts as used and is never sent. `asks` tells of each message whether a request follows it:
    so it is with a person's words and a tool's results.
    """

    base: int
    sizes: tuple[int, ...]
    asks: tuple[bool, ...]
    reserve: int = 0

    @property
    def totals(self) -> tuple[int, ...]:
        """The tokens before any message, then after each."""
        return tuple(accumulate(self.sizes, initial=self.base))

    def begins_at(self, above: int) -> int | None:
        """The message with which it is first above that, 0 for none at all; None where it never is."""
        return next((at for at, total in enumerate(self.totals) if total > above), None)


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Compaction begins above `threshold` of the limit and comes down to `goal` of it."""

    limit: int
    threshold: float = 0.8
    goal: float = 0.7


@dataclass(frozen=True, kw_only=True)
class Happening:
    """`over_hits` are requests above the limit before anything was compacted, `failures` those still above it then."""

    requests: int = 0
    over_hits: int = 0
    failures: int = 0
    compactions: int = 0
    tokens_sent: int = 0
    tokens_removed: int = 0

    def __add__(self, other: Happening) -> Happening:
        return Happening(**{name: value + getattr(other, name) for name, value in vars(self).items()})


# What a compaction with the request at this message leaves of so many tokens.
Compacted = Callable[[int, int], int]


def replay(growths: Iterable[Growth], rules: Rules) -> Happening:
    return sum((gone_through(one, rules, to_the_goal(one, rules)) for one in growths), start=Happening())


def to_the_goal(growth: Growth, rules: Rules) -> Compacted:
    """What was said last, and what goes along with every request, always stays."""
    goal = tokens(rules.goal, rules.limit)
    return lambda at, total: min(total, max(goal, growth.base + growth.sizes[at]))


def gone_through(growth: Growth, rules: Rules, compacted: Compacted) -> Happening:
    trigger = tokens(rules.threshold, rules.limit)
    total, found = growth.base, Happening()
    for at, (size, asks) in enumerate(zip(growth.sizes, growth.asks, strict=True)):
        total += size
        if not asks:
            continue
        before = total
        if total > trigger:
            total = compacted(at, total)
        found += Happening(
            requests=1,
            over_hits=before > rules.limit,
            failures=total > rules.limit,
            compactions=before > trigger,
            tokens_sent=total - growth.reserve,
            tokens_removed=before - total,
        )
    return found


# Candidates stand this far apart, in whole hundreds.
STEP, ROUND = 1.08, 100
# The smallest limit that rids us of so much of the trouble; where none does, the best, if it is worth a change.
ENOUGH, WORTH = 0.8, 0.5
LEAST_TROUBLE = 3


@dataclass(frozen=True, kw_only=True)
class Subject:
    """An agent and its newest courses. `limit` is the one to be set, which a P1 agent exceeds by `factor`.

    `cap` is the window less the answer's reserve: more than that in force is never proposed.
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
        """The highest limit that the window leaves in force as it is set; 0 where that cannot be told."""
        return int(self.cap / self.factor) // ROUND * ROUND if self.cap else 0


@dataclass(frozen=True, kw_only=True)
class LimitChange:
    """`now` and `then` are the replay of the same courses under both limits."""

    agent_id: int
    before: int
    after: int
    now: Happening
    then: Happening


def limit_change(subject: Subject, found: Collection[Finding]) -> LimitChange | None:
    """None: nothing was found that a higher limit helps, too little can be replayed, or none would help enough."""
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
    """From just above the limit up to the most that the window allows, that included."""
    limit = float(subject.limit)
    while (limit := limit * STEP) < subject.most:
        yield min(-int(-limit // ROUND) * ROUND, subject.most)
    if subject.most > subject.limit:
        yield subject.most
