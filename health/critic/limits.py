"""Whether a higher limit would have helped an agent, and how much: the smallest that does is proposed.

Never past the window less what is kept for the answer; where the window is unknown, nothing is proposed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from health.critic.patterns import OVER_HIT, PROVIDER_OVERFLOW, TOKEN_LIMIT_EXCEEDED, Finding
from health.critic.replay import Growth, Happening, Rules, replay

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
