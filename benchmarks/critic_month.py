"""A simulated month of 200 agents with limits set wrong on purpose: does the critic help in dialogs it never saw?

Each day every agent has new dialogs. Half of them the critic may see: their over-hits are its events, their sizes its
replay. The other half is only counted: under the limits as they were set, and under those that the critic's proposals,
accepted as they come, have made of them by that day. The world is rougher than the replay: a compaction misses its goal
by up to a fifth, and agents differ in how large their messages are and how far sizes scatter.
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from health.critic.replay import (
    OVER_HIT,
    TOKEN_LIMIT_EXCEEDED,
    WINDOW,
    Growth,
    PastEvent,
    ReplayTotals,
    Rules,
    Subject,
    findings,
    limit_change,
    replay,
)
from health.limits import output_reserve

AGENTS, DAYS, SEED = 200, 30, 7
DIALOGS_A_DAY, NEWEST = 4, 20
WINDOWS = (8192, 16_384, 32_768, 131_072)
LEAST_LIMIT = 3500
BEGIN = datetime(2026, 11, 1, tzinfo=UTC)


@dataclass(kw_only=True)
class SimulatedAgent:
    """`set_limit`: the limit as it was set at first. `limit`: the present one, after the critic's proposals."""

    number: int
    window: int
    set_limit: int
    size: float
    scatter: float
    base: int
    limit: int = 0
    seen: list[Growth] = field(default_factory=list)
    happened: list[PastEvent] = field(default_factory=list)

    @property
    def cap(self) -> int:
        return self.window - output_reserve(self.window)


@dataclass(frozen=True, kw_only=True)
class Month:
    """Over-hits in dialogs that the critic never saw; `steady` counts the second half of the month alone.

    `at_the_window`: over-hits with every limit as high as its window allows, the least possible.
    """

    requests: int
    before: int
    after: int
    steady_before: int
    steady_after: int
    at_the_window: int
    proposals: int
    past_the_window: int
    tokens_before: int
    tokens_after: int


def agents(chance: random.Random, count: int) -> Iterator[SimulatedAgent]:
    """Limits from far too low to just right; some windows are too small for the work, and no limit can help there."""
    for number in range(count):
        window = chance.choice(WINDOWS)
        size = math.exp(chance.uniform(math.log(120), math.log(2500)))
        set_limit = min(max(LEAST_LIMIT, int(size * chance.uniform(2, 12))), window - output_reserve(window))
        yield SimulatedAgent(
            number=number, window=window, set_limit=set_limit, size=size, scatter=chance.uniform(0.4, 0.9),
            base=chance.randint(150, 1200), limit=set_limit,
        )  # fmt: skip


def a_dialog(agent: SimulatedAgent, chance: random.Random) -> Growth:
    """Messages whose sizes scatter as texts and results of tools do: most are small, a few are very large."""
    count = chance.randint(10, 60)
    sizes = tuple(int(agent.size * chance.lognormvariate(0, agent.scatter)) for _each in range(count))
    return Growth(base=agent.base, sizes=sizes, asks=tuple(at % 2 == 0 for at in range(count)))


def lived(growth: Growth, limit: int, chance: random.Random) -> ReplayTotals:
    """Simulate one dialog under the agent's present limit."""
    return replay([growth], Rules(limit=limit, goal=0.7 * chance.uniform(0.8, 1.13)))


def month(*, count: int = AGENTS, days: int = DAYS, seed: int = SEED) -> Month:
    chance = random.Random(seed)
    everybody = list(agents(chance, count))
    told = [_day(agent, day, chance) for day in range(days) for agent in everybody]
    late = told[len(told) // 2 :]
    return Month(
        requests=sum(day.under_set.requests for day in told),
        before=sum(day.under_set.over_hits for day in told),
        after=sum(day.under_now.over_hits for day in told),
        steady_before=sum(day.under_set.over_hits for day in late),
        steady_after=sum(day.under_now.over_hits for day in late),
        at_the_window=sum(day.at_the_window.over_hits for day in told),
        proposals=sum(day.proposals for day in told),
        past_the_window=sum(day.is_past_the_window for day in told),
        tokens_before=sum(day.under_set.tokens_sent for day in told),
        tokens_after=sum(day.under_now.tokens_sent for day in told),
    )


@dataclass(frozen=True, kw_only=True)
class Day:
    under_set: ReplayTotals
    under_now: ReplayTotals
    at_the_window: ReplayTotals
    proposals: int
    is_past_the_window: bool


def _day(agent: SimulatedAgent, day: int, chance: random.Random) -> Day:
    """The critic runs in the evening; its proposals are in force from the next morning."""
    under_set = under_now = at_the_window = ReplayTotals()
    for _each in range(DIALOGS_A_DAY // 2):
        unseen, noise = a_dialog(agent, chance), chance.random()
        under_set += lived(unseen, agent.set_limit, random.Random(noise))
        under_now += lived(unseen, agent.limit, random.Random(noise))
        at_the_window += lived(unseen, agent.cap, random.Random(noise))
        _live_and_see(agent, BEGIN + timedelta(days=day, hours=20), chance)
    changed = _look(agent, now=BEGIN + timedelta(days=day, hours=23))
    return Day(
        under_set=under_set,
        under_now=under_now,
        at_the_window=at_the_window,
        proposals=changed,
        is_past_the_window=agent.limit > agent.cap,
    )


def _live_and_see(agent: SimulatedAgent, at: datetime, chance: random.Random) -> None:
    growth = a_dialog(agent, chance)
    came = lived(growth, agent.limit, chance)
    agent.seen = [*agent.seen, growth][-NEWEST:]
    codes = [OVER_HIT] * came.over_hits + [TOKEN_LIMIT_EXCEEDED] * came.failures
    agent.happened = [one for one in agent.happened if one.at > at - WINDOW]
    agent.happened += [PastEvent(code=code, agent_id=agent.number, at=at) for code in codes]


def _look(agent: SimulatedAgent, *, now: datetime) -> bool:
    """Run the critic; every proposal is accepted unchanged."""
    subject = Subject(
        agent_id=agent.number,
        limit=agent.limit,
        cap=agent.cap,
        rules=Rules(limit=agent.limit),
        growths=tuple(agent.seen),
    )
    change = limit_change(subject, findings(agent.happened, now=now))
    if change is None:
        return False
    agent.limit, agent.happened = change.after, []
    return True


def main(count: int = AGENTS) -> None:
    found = month(count=count)
    print(f"{count} agents, {DAYS} days, seed {SEED}: {found.requests:,} requests in dialogs that the critic never saw")
    print(f"  over-hits        {found.before:7,} → {found.after:7,}  ({1 - found.after / found.before:.0%} fewer)")
    fewer = 1 - found.steady_after / found.steady_before
    print(f"  in the last half {found.steady_before:7,} → {found.steady_after:7,}  ({fewer:.0%} fewer)")
    print(f"  no limit within the windows would leave fewer than {found.at_the_window:,}")
    print(f"  tokens sent      ×{found.tokens_after / found.tokens_before:.2f}")
    print(f"  {found.proposals} proposals, {found.past_the_window} past the window")
    print(json.dumps(vars(found)))


if __name__ == "__main__":
    main(*(int(number) for number in sys.argv[1:]))
