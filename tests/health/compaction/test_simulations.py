"""Overflow simulations: chats of 10,000 tokens under a limit of 5,000, each of another kind, by the real parts.

All must fit afterwards, lawfully, with their priorities whole, whichever engine runs first; the mean coherence of the
suite with the chain first is at least 0.85.
Static vectors serve here, as they are quick; `make test-long` measures it by MiniLM, as planned.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from statistics import mean
from time import process_time

import pytest

from health.adapters.embeddings import Embeddings, StaticVectors
from health.adapters.minilm import MiniLM
from health.compaction.compact import compact
from health.compaction.config import ContextConfig, How
from health.compaction.laws.invariants import broken
from health.compaction.runner import run
from health.compaction.terms.outcome import CompactionOutcome, Status
from health.compaction.terms.ports import Kit
from health.compaction.terms.units import ContextState, Kind, Priority, Role
from health.tokens.counters import counter_for
from tests.health.compaction.histories import (
    Telling,
    blob,
    chinese,
    code,
    log,
    long_talk,
    payload,
    prose,
)

TOKENS, LIMIT = 10_000, 5000
GPT = Kit(counter=counter_for("gpt-4"))
Turn = Callable[[Telling], object]


def exchange(telling: Telling, *, sentences: int = 3) -> Telling:
    telling.say(Role.USER, prose(telling.random, sentences))
    return telling.say(Role.ASSISTANT, prose(telling.random, sentences))


def sometimes(share: float, often: Turn, seldom: Turn) -> Turn:
    return lambda telling: (seldom if telling.random.random() < share else often)(telling)


def prioritised(telling: Telling) -> object:
    """The plan's generator: a third of the messages has a priority, among messages, code and plan references."""
    kind, write = telling.random.choice(((Kind.MESSAGE, prose), (Kind.CODE, code), (Kind.PLAN_REF, prose)))
    # A P1 message is short: many long ones would be more than the limit, which is another test.
    priority = telling.random.choice((None, None, None, Priority.P1, Priority.P2, Priority.P3))
    text = prose(telling.random, 1) if priority is Priority.P1 else write(telling.random)
    return telling.say(Role.USER, text, kind=kind, priority=priority)


TURNS: dict[str, Turn] = {
    "a long talk": exchange,
    "many short messages": lambda t: exchange(t, sentences=1),
    "few long messages": lambda t: exchange(t, sentences=30),
    "an agent at work on code": lambda t: exchange(t, sentences=1).round(code(t.random), said="I read the file."),
    "code in six languages": lambda t: t.say(Role.ASSISTANT, code(t.random), kind=Kind.CODE),
    "logs": lambda t: t.round(log(t.random, 20), said=prose(t.random, 1)),
    "JSON payloads": lambda t: exchange(t).round(payload(t.random), tool="search"),
    "parallel calls": lambda t: exchange(t).round(*(prose(t.random, 2) for _ in range(4))),
    "a talk in Chinese": lambda t: t.say(Role.USER, chinese(t.random)).say(Role.ASSISTANT, chinese(t.random)),
    "two languages": sometimes(0.5, exchange, lambda t: t.say(Role.USER, chinese(t.random, 4))),
    "priorities": prioritised,
    "pins": sometimes(0.05, exchange, lambda t: t.say(Role.USER, prose(t.random, 1), pinned=True)),
    "plan references": sometimes(0.1, exchange, lambda t: t.say(Role.USER, prose(t.random), kind=Kind.PLAN_REF)),
    "base64 in between": sometimes(0.05, exchange, lambda t: t.round(blob(t.random, 600))),
    "images": sometimes(0.2, exchange, lambda t: t.say(Role.USER, "See this.", image_tokens=100)),
    "prompts of the driver": sometimes(
        0.2, exchange, lambda t: t.say(Role.USER, "Write a reminder first.", inserted=True)
    ),
    "empty messages": sometimes(0.3, exchange, lambda t: t.say(Role.ASSISTANT, "")),
    "one oversized result": sometimes(0.02, exchange, lambda t: t.round(log(t.random, 150))),
    "all of it at once": lambda t: t.random.choice(list(TURNS.values())[:-1])(t),
}


@cache
def models() -> Embeddings:
    """The real ones; with a clock that stands still none is ever found to be slow, so that figures repeat."""
    return Embeddings({"minilm": MiniLM, "static": StaticVectors}, clock=lambda: 0.0)


@cache
def simulated(name: str, how: How, kind: str = "static") -> tuple[ContextState, CompactionOutcome]:
    telling = long_talk(sum(map(ord, name)), tokens=TOKENS, turn=TURNS[name], kit=GPT)
    state = telling.state(limit=LIMIT, kit=GPT, task="Finish the release", config=ContextConfig(how=how))
    return state, run(compact(state, GPT), answer=models().run(kind))


@pytest.mark.parametrize("how", How)
@pytest.mark.parametrize("name", TURNS)
def test_an_overflowing_chat_is_brought_under_the_limit_without_breaking_a_law(name: str, how: How) -> None:
    state, outcome = simulated(name, how)

    assert state.estimated_tokens >= TOKENS
    assert (outcome.status, outcome.recovered) == (Status.APPLIED, None)
    assert outcome.estimated_tokens_after <= LIMIT
    assert broken(state.units, outcome.state.units) == []


@pytest.mark.parametrize("how", How)
@pytest.mark.parametrize("name", TURNS)
def test_priorities_are_preserved_and_the_run_is_rewarded(name: str, how: How) -> None:
    _, outcome = simulated(name, how)

    assert outcome.breaking is not None
    assert outcome.breaking.priority_preserved == 1.0
    assert outcome.reward is not None
    assert outcome.reward > 1


@pytest.mark.parametrize("how", How)
@pytest.mark.parametrize("name", TURNS)
def test_a_simulation_compacted_again_does_not_change(name: str, how: How) -> None:
    _, outcome = simulated(name, how)

    again = run(compact(outcome.state, GPT), answer=models().run("static"))

    assert (again.status, again.state) == (Status.SKIPPED, outcome.state)


def test_fifty_messages_take_less_than_two_seconds() -> None:
    telling = Telling(7)
    while len(telling.units) < 50:
        exchange(telling, sentences=12)
    state = telling.state(limit=LIMIT, kit=GPT, task="Finish the release", config=ContextConfig(how=How.CHAIN))
    simulated("a long talk", How.CHAIN)  # the vectors are loaded once in a process

    begun = process_time()
    outcome = run(compact(state, GPT), answer=models().run("static"))

    assert process_time() - begun < 2
    assert outcome.status is Status.APPLIED


@pytest.mark.parametrize("kind", ["static", pytest.param("minilm", marks=pytest.mark.long)])
def test_the_mean_coherence_of_the_suite_is_at_least_85_percent(kind: str) -> None:
    coherences = {name: simulated(name, How.CHAIN, kind)[1].coherence or 0 for name in TURNS}

    assert mean(coherences.values()) >= 0.85, coherences
