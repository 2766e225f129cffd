"""What a strategy took beyond the goal: the best of it comes back, lawfully, and nothing is told twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from health.compaction.compact import compact
from health.compaction.config import ContextConfig, How, chain_for
from health.compaction.laws.invariants import broken
from health.compaction.laws.weave import ledger_tokens, without_ledger
from health.compaction.reading.digest import HEADER, NOTICE
from health.compaction.runner import run
from health.compaction.strategies import REGISTRY
from health.compaction.terms.outcome import CompactionOutcome, Extent, Status
from health.compaction.terms.ports import Attempt, Kit, Strategy, StrategyRun
from health.compaction.terms.pressure import targets
from health.compaction.terms.units import ContextState, Kind, Role, Unit
from tests.health.compaction.builders import KIT, a_round, a_state, a_unit, texts
from tests.health.compaction.histories import KIT as FOUR
from tests.health.compaction.histories import Telling, log, long_talk, payload, prose

LIMIT = 1000
FACT = "The gate code is Z-4471 and the house is Calle Mayor 18."


def making(change: Callable[[tuple[Unit, ...]], Iterable[Unit]]) -> Strategy:
    def strategy(state: ContextState, kit: Kit) -> StrategyRun:
        yield from ()
        return Attempt(state=state.with_units(change(state.units)), changed=True)

    return strategy


def only(*kept: str) -> Strategy:
    return making(lambda units: [unit for unit in units if unit.id in kept])


def compacted(state: ContextState, **strategies: Strategy) -> CompactionOutcome:
    return run(compact(state, KIT, chain=tuple(strategies), strategies=strategies))


def plain_talk(length: int, *, sentences: int = 5) -> tuple[Unit, ...]:
    """Messages of short sentences in lower-case words, alternating, that state nothing."""
    random = Random(length)
    vocabulary = [
        f"{first}{last}" for first in ("ba", "do", "le", "mi", "so", "tu") for last in ("ra", "ne", "lo", "ki")
    ]
    return tuple(
        a_unit(
            " ".join(f"{' '.join(random.choices(vocabulary, k=9))} there." for _ in range(sentences)),
            id=f"t{at}",
            role=Role.ASSISTANT if at % 2 else Role.USER,
        )
        for at in range(length)
    )


def a_chat(*told: Unit, **fields: Any) -> ContextState:
    """Some 2,000 words between a first and a last message, of which the limit takes half."""
    talk = plain_talk(40)
    return a_state(
        a_unit("What it is for.", id="first"),
        *talk[:20],
        *told,
        *talk[20:],
        a_unit("Go on.", id="last"),
        limit=LIMIT,
        **fields,
    )


def tokens_without_ledger(state: ContextState) -> int:
    return state.estimated_tokens - ledger_tokens(state)


def ids(state: ContextState) -> list[str]:
    """Of all but the ledger."""
    return [unit.id for unit in without_ledger(state).units]


def test_what_went_comes_back_up_to_nine_tenths_of_the_goal() -> None:
    state = a_chat()

    outcome = compacted(state, hasty=only("first", "last"))

    goal = targets(state.config, limit=LIMIT).goal
    assert 0.75 * goal < tokens_without_ledger(outcome.state) <= 0.9 * goal
    assert broken(state.units, outcome.state.units) == []


def test_the_best_of_what_went_comes_back_word_for_word() -> None:
    told = a_unit(FACT, id="told", role=Role.ASSISTANT)

    outcome = compacted(a_chat(told), hasty=only("first", "last"))

    assert KIT.counted([told])[0] in outcome.state.units


def test_a_notice_tells_that_not_all_of_it_stands() -> None:
    assert NOTICE in texts(compacted(a_chat(), hasty=only("first", "last")).state)


def test_what_was_weighed_counts_as_read() -> None:
    outcome = compacted(a_chat(), hasty=only("first", "last"))

    assert {receipt.extent for receipt in outcome.coverage} == {Extent.IN_FULL}


def test_a_strategy_that_stops_near_the_goal_is_left_as_it_is() -> None:
    state = a_chat()
    near = ["first", *(f"t{at}" for at in range(12)), "last"]

    outcome = compacted(state, careful=only(*near))

    assert ids(outcome.state) == near


def test_passages_of_a_tool_round_come_back_in_a_digest() -> None:
    found = a_round("I look it up.", f"order W4173664 was shipped. {FACT}")

    outcome = compacted(a_chat(*found), hasty=only("first", "last"))

    assert f"{HEADER}" in texts(outcome.state)
    assert "W4173664" in texts(outcome.state)
    assert broken(outcome.state.units, outcome.state.units) == []


def test_shortened_messages_come_back_whole_the_best_first() -> None:
    state = a_chat(a_unit(f"{FACT} {'indeed ' * 5}", id="told", role=Role.ASSISTANT))
    shorten = making(lambda units: [units[0], *(unit.saying("short") for unit in units[1:-1]), units[-1]])

    outcome = compacted(state, hasty=shorten)

    standing = {unit.id: unit for unit in outcome.state.units}
    whole = [unit.id for unit in state.units if standing[unit.id] == unit]
    assert "told" in whole
    assert 5 < len(whole) < 15


def test_what_a_summary_says_word_for_word_does_not_come_back_beside_it() -> None:
    told = a_unit(f"{FACT} The key to the cellar is K-88.", id="told", role=Role.ASSISTANT)
    state = a_chat(told)
    gone = tuple(unit.id for unit in state.units[1:-1])
    summary = Unit(id="s", role=Role.USER, kind=Kind.SUMMARY, content=f"[Summary]\n{FACT}", source_ids=gone)

    outcome = compacted(state, telling=making(lambda units: [units[0], summary, units[-1]]))

    assert texts(outcome.state).count("Z-4471") == 1
    assert "The key to the cellar is K-88." in texts(outcome.state)
    assert ids(outcome.state)[-2:] == ["s", "last"]


def test_the_mark_of_a_gap_goes_where_something_of_it_came_back() -> None:
    state = a_chat(a_unit(FACT, id="told"))

    outcome = compacted(state, keep_last_five=REGISTRY["keep_last_five"])

    assert FACT in texts(outcome.state)
    assert "[Omitted earlier context]" not in texts(outcome.state)


def test_the_pruning_agents_own_choice_stays_as_it_is() -> None:
    outcome = compacted(a_chat(), prune_with_agent=only("first", "last"))

    assert ids(outcome.state) == ["first", "last"]


def test_a_refill_that_fails_costs_nothing_but_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> StrategyRun:
        raise ValueError("no room")

    monkeypatch.setattr("health.compaction.attempts.refilled", failing)

    outcome = compacted(a_chat(), hasty=only("first", "last"))

    assert (outcome.status, ids(outcome.state)) == (Status.APPLIED, ["first", "last"])


# The chains that live dialogs run.


def turn(telling: Telling) -> Telling:
    telling.say(Role.USER, prose(telling.random, 2))
    telling.round(log(telling.random, 20), said=prose(telling.random, 1))
    telling.round(payload(telling.random), tool="search")
    return telling.say(Role.ASSISTANT, prose(telling.random, 4))


@pytest.mark.parametrize("how", How)
@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
def test_a_dialog_keeps_at_least_three_quarters_of_what_the_goal_allows(how: How, share: float) -> None:
    telling = long_talk(7, tokens=10_000, turn=turn)
    config = ContextConfig(how=how)
    state = telling.state(limit=int(10_000 * share), config=config, task="Finish the release plan")

    outcome = run(compact(state, FOUR, chain=chain_for(config)))

    assert outcome.status is Status.APPLIED
    assert outcome.estimated_tokens_after >= 0.75 * config.goal * state.limit


@pytest.mark.parametrize("how", How)
def test_later_runs_over_a_growing_history_of_tools_do_not_take_ever_more(how: How) -> None:
    """Each run begins with what the one before left, and what has been said since."""
    config = ContextConfig(how=how)
    telling = long_talk(3, tokens=6000, turn=turn)
    state = telling.state(limit=7000, config=config)
    for _ in range(5):
        while state.estimated_tokens <= 0.8 * state.limit:
            begun = len(telling.units)
            turn(telling)
            state = state.with_units((*state.units, *FOUR.counted(telling.units[begun:])))
        outcome = run(compact(state, FOUR, chain=chain_for(config)))

        assert outcome.estimated_tokens_after >= 0.75 * config.goal * state.limit
        state = replace(outcome.state, originals=())
