"""The chain's rules: when it runs, what it carries on, when it stops, what it refuses, and how it reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from health.compaction.compact import DEFAULT_CHAIN, compact
from health.compaction.config import ContextConfig, Hybrid, RecoveryMode
from health.compaction.reading.ledger import is_ledger
from health.compaction.runner import run
from health.compaction.strategies import REGISTRY
from health.compaction.terms.outcome import Code, CompactionOutcome, Status, Step
from health.compaction.terms.ports import (
    Answer,
    Attempt,
    Embed,
    Embedded,
    Kit,
    Need,
    Prune,
    Read,
    Strategy,
    StrategyRun,
    unchanged,
)
from health.compaction.terms.reasons import Reason, Why
from health.compaction.terms.units import ContextState, Kind, Role, Unit
from tests.health.compaction.builders import KIT, a_round, a_state, a_talk, a_unit, ids, like_marked, p1, texts

ERROR = ContextConfig(recovery_mode=RecoveryMode.ERROR)


def to(tokens: int) -> Strategy:
    """A strategy that drops messages from the second on until so many tokens are left."""

    def strategy(state: ContextState, kit: Kit) -> StrategyRun:
        yield from ()
        units = list(state.units)
        while len(units) > 2 and state.with_units(units).estimated_tokens > tokens:
            del units[1]
        return Attempt(state=state.with_units(units), changed=len(units) < len(state.units))

    return strategy


def making(change: Callable[[tuple[Unit, ...]], Iterable[Unit]]) -> Strategy:
    """A strategy that does this to the units, and says that it changed them."""

    def strategy(state: ContextState, kit: Kit) -> StrategyRun:
        yield from ()
        return Attempt(state=state.with_units(change(state.units)), changed=True)

    return strategy


def raising(error: BaseException) -> Strategy:
    def strategy(state: ContextState, kit: Kit) -> StrategyRun:
        yield from ()
        raise error

    return strategy


def idle(state: ContextState, kit: Kit) -> StrategyRun:
    yield from ()
    return unchanged(state, "not applicable")


def compacted(state: ContextState, kit: Kit = KIT, **strategies: Strategy) -> CompactionOutcome:
    """The outcome of the chain of these strategies, in order."""
    return run(compact(state, kit, chain=tuple(strategies), strategies=strategies))


def a_hundred(*, limit: int, config: ContextConfig = ERROR) -> ContextState:
    """Ten messages of ten tokens."""
    return a_state(*a_talk(10), limit=limit, config=config)


def phases(outcome: CompactionOutcome) -> list[str]:
    return [step.phase for step in outcome.steps]


# When it runs.


@pytest.mark.parametrize("limit", [125, 126, 1000])
def test_nothing_happens_at_or_under_the_trigger(limit: int) -> None:
    state = a_hundred(limit=limit)

    outcome = compacted(state, cut=to(10))

    assert (outcome.status, outcome.state) == (Status.SKIPPED, state)
    assert "not above 80%" in outcome.reason
    assert phases(outcome) == ["detection"]


def test_a_run_begins_one_token_above_the_trigger() -> None:
    assert compacted(a_hundred(limit=124), cut=to(60)).status is Status.APPLIED


def test_an_empty_context_is_left_alone() -> None:
    assert compacted(a_state(limit=10), cut=to(0)).status is Status.SKIPPED


# What it carries on, and when it stops.


def test_each_strategy_goes_on_from_the_best_state_so_far() -> None:
    """20,000 tokens, limit 5,000, reducers that each do not suffice: composed they do."""
    state = a_state(*a_talk(200, words=100), limit=5000)

    outcome = compacted(state, first=to(14_000), second=to(7000), third=to(3500))

    assert [step.estimated_after for step in outcome.steps[1:-1]] == [14_000, 7000, 3500]
    assert (outcome.status, outcome.recovered) == (Status.APPLIED, None)


def test_the_chain_stops_at_the_goal() -> None:
    outcome = compacted(a_hundred(limit=100), first=to(70), second=to(20))

    assert phases(outcome) == ["detection", "first", "success"]
    assert outcome.estimated_tokens_after == 70


def test_the_chain_goes_on_above_the_goal() -> None:
    assert compacted(a_hundred(limit=100), first=to(80), second=to(50)).estimated_tokens_after == 50


@pytest.mark.parametrize(
    ("words", "limit", "left"),
    [
        (10, 100, 80),  # acceptable, though above the goal
        (10, 90, 90),  # it merely fits
        (5, 95, 95),  # it fits at last, though less than a tenth is gained
    ],
)
def test_what_is_acceptable_or_merely_fits_at_the_end_of_the_chain_is_taken(words: int, limit: int, left: int) -> None:
    outcome = compacted(a_state(*a_talk(100 // words, words=words), limit=limit, config=ERROR), first=to(left))

    assert (outcome.status, outcome.estimated_tokens_after) == (Status.APPLIED, left)


def test_less_than_a_tenth_in_all_is_not_worth_a_change() -> None:
    state = a_state(*a_talk(20, words=5), limit=100)

    outcome = compacted(state, first=to(95), second=idle)

    assert (outcome.status, outcome.state) == (Status.SKIPPED, state)
    assert "less than 10%" in outcome.reason


def test_the_chain_repeats_while_that_pays() -> None:
    def a_message_less(units: tuple[Unit, ...]) -> Iterable[Unit]:
        return [units[0], *units[2:]] if len(units) > 7 else units

    outcome = compacted(a_hundred(limit=100), less=making(a_message_less))

    assert outcome.estimated_tokens_after == 80
    assert phases(outcome) == ["detection", "less", "less", "success"]


def test_a_further_pass_that_does_not_pay_is_neither_taken_nor_reported() -> None:
    def a_message_then_two_words(units: tuple[Unit, ...]) -> Iterable[Unit]:
        return [units[0], *units[2:]] if len(units) == 10 else [units[0], units[1].saying("word " * 8), *units[2:]]

    outcome = compacted(a_hundred(limit=100), less=making(a_message_then_two_words))

    assert outcome.estimated_tokens_after == 90
    assert phases(outcome) == ["detection", "less", "success"]


def test_within_the_limit_the_chain_repeats_more_than_three_times_while_each_time_pays() -> None:
    config = replace(ERROR, warning_threshold=0.3, accept=0.3, goal=0.2)
    drop = making(lambda units: [units[0], *units[2:]])

    assert compacted(a_hundred(limit=100, config=config), drop=drop).estimated_tokens_after == 30


def test_over_the_limit_whatever_shrinks_the_context_is_taken() -> None:
    outcome = compacted(a_state(*a_talk(20, words=5), limit=30, config=ERROR), cut=to(95))

    assert outcome.reason == "The chain came to ≈95 tokens, the limit is 30. Nothing was changed."


@pytest.mark.parametrize("known", [(), tuple(a_talk(12))])
def test_each_strategy_of_a_pass_sees_the_messages_of_before_the_pass_or_older_ones_that_are_known(
    known: tuple[Unit, ...],
) -> None:
    seen: list[tuple[Unit, ...]] = []

    def look(state: ContextState, kit: Kit) -> StrategyRun:
        seen.append(state.originals)
        return idle(state, kit)

    state = replace(a_hundred(limit=100), originals=known)
    compacted(state, first=to(90), look=look)

    assert seen[0] == (known or state.units)


@pytest.mark.parametrize(("passes", "tokens"), [(Hybrid().max_iterations, [400, 360, 320]), (1, [400])])
def test_over_the_limit_the_chain_runs_three_times_or_as_often_as_configured(passes: int, tokens: list[int]) -> None:
    runs: list[int] = []

    def tenth(state: ContextState, kit: Kit) -> StrategyRun:
        yield from ()
        runs.append(state.estimated_tokens)
        return Attempt(state=state.with_units([state.units[0], *state.units[5:]]), changed=True)

    state = a_state(*a_talk(40), limit=30, config=replace(ERROR, hybrid=Hybrid(max_iterations=passes)))
    run(compact(state, KIT, chain=["tenth"], strategies={"tenth": tenth}))

    assert runs == tokens


# Which chain.


def test_without_a_chain_the_configured_one_runs_in_its_order() -> None:
    state = a_hundred(limit=50, config=replace(ERROR, chain_order=("b", "a")))

    outcome = run(compact(state, KIT, strategies={"a": idle, "b": idle}))

    assert phases(outcome) == ["detection", "b", "a"]


def test_an_empty_chain_is_the_seeds_four_strategies() -> None:
    outcome = run(compact(a_hundred(limit=50), KIT, chain=(), strategies=dict.fromkeys(DEFAULT_CHAIN, idle)))

    assert phases(outcome) == [
        "detection",
        "summarize_old",
        "prioritize_recent",
        "content_type_chunking",
        "discard_low_rel",
    ]


@pytest.mark.parametrize(
    ("passages", "ran"),
    [
        (70, ()),
        (80, ()),  # acceptable
        (90, ("cut",)),  # the next one makes it acceptable
    ],
)
def test_the_configured_chain_has_its_turn_only_where_what_passages_kept_does_not_suffice(
    passages: int, ran: tuple[str, ...]
) -> None:
    state = a_hundred(limit=100, config=replace(ERROR, chain_order=("cut", "more")))
    strategies = {
        "trim_payloads": idle,
        "select_passages": to(passages),
        "cut": to(passages - 10),
        "more": to(60),
    }

    outcome = run(compact(state, KIT, strategies=strategies))

    assert phases(outcome) == ["detection", "trim_payloads", "select_passages", *ran, "success"]


def test_an_unknown_strategy_is_warned_about_once_and_skipped() -> None:
    outcome = run(compact(a_hundred(limit=100), KIT, chain=("foo", "cut", "foo"), strategies={"cut": to(60)}))

    assert outcome.warnings == (Reason(Why.UNKNOWN_STRATEGY, {"name": "foo"}),)
    assert phases(outcome) == ["detection", "cut", "success"]


def test_strategies_read_the_chain_that_runs_and_the_result_keeps_the_configured_one() -> None:
    seen: list[tuple[str, ...]] = []

    def looking(state: ContextState, kit: Kit) -> StrategyRun:
        seen.append(state.config.chain_order)
        return (yield from to(60)(state, kit))

    outcome = compacted(a_hundred(limit=100), looking=looking)

    assert seen == [("looking",)]
    assert outcome.state.config == ERROR


def test_every_strategy_of_the_default_chain_is_registered() -> None:
    assert set(ContextConfig().chain_order) <= set(REGISTRY)


# What it refuses.


@pytest.mark.parametrize(
    ("change", "law"),
    [
        (lambda units: [], "nothing is left"),
        (lambda units: [units[0], *reversed(units[1:])], "comes after"),
        (lambda units: [*units[:3], units[2]], "stands 2 times"),
        (lambda units: units[1:], "protected and was removed"),
        (lambda units: [units[0].saying("other"), *units[1:3], units[-1]], "protected and was changed"),
        (lambda units: [u for u in units if u.role is not Role.TOOL], "lost a part"),
    ],
)
def test_a_step_that_breaks_a_law_changes_nothing_and_names_it(change: Any, law: str) -> None:
    state = a_state(*a_talk(4), *a_round("look it up", "found it there"), *a_talk(5, start=4), limit=100)

    outcome = compacted(state, lawless=making(change), cut=to(60))

    assert law in outcome.steps[1].note
    assert not outcome.steps[1].changed
    assert outcome.steps[2].estimated_before == state.estimated_tokens


def test_a_refused_step_keeps_the_progress_before_it() -> None:
    outcome = compacted(a_hundred(limit=100), cut=to(80), lawless=making(lambda units: []))

    assert outcome.estimated_tokens_after == 80


def test_a_step_that_does_not_shrink_changes_nothing_and_says_so() -> None:
    longer = making(lambda units: [*units[:-1], a_unit("even more"), units[-1]])

    outcome = compacted(a_hundred(limit=100), longer=longer, cut=to(60))

    assert (outcome.steps[1].changed, outcome.steps[1].note) == (False, "It would not make the context smaller.")
    assert outcome.steps[1].estimated_after == 100


def test_a_strategy_may_give_its_reason_for_changing_nothing() -> None:
    assert compacted(a_hundred(limit=100), idle=idle, cut=to(60)).steps[1].note == "not applicable"


def test_a_strategy_that_raises_costs_its_step_and_nothing_else() -> None:
    outcome = compacted(a_hundred(limit=100), bad=raising(ValueError("half-way")), cut=to(60))

    assert outcome.steps[1].note == "It failed: ValueError: half-way"
    assert outcome.estimated_tokens_after == 60


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interruption_is_no_failure_of_a_strategy(error: type[BaseException]) -> None:
    with pytest.raises(error):
        compacted(a_hundred(limit=100), bad=raising(error()), cut=to(60))


def test_a_strategy_may_leave_counting_to_the_chain() -> None:
    shorter = making(lambda units: [units[0], *(unit.saying("short") for unit in units[1:8]), *units[8:]])

    assert compacted(a_hundred(limit=100), shorter=shorter).estimated_tokens_after == 37


def test_closing_the_run_cancels_the_strategy_in_the_middle_of_its_question() -> None:
    closed: list[bool] = []

    def asking(state: ContextState, kit: Kit) -> StrategyRun:
        try:
            yield Embed(texts=("what?",))
        finally:
            closed.append(True)
        return unchanged(state, "")

    running = compact(a_hundred(limit=100), KIT, chain=["asking"], strategies={"asking": asking})
    assert isinstance(next(running), Step)
    assert isinstance(running.send(None), Embed)

    running.close()

    assert closed == [True]


# What cannot be done.


def test_p1_alone_over_the_limit_fails_where_no_recovery_is_wished_for_and_names_the_three_largest() -> None:
    first = [p1(a_unit("word " * size, id=f"p{size}")) for size in (30, 50, 40, 60)]
    state = a_state(*first, *a_talk(3), limit=100, config=ERROR)

    outcome = compacted(state, cut=to(60))

    assert (outcome.status, outcome.code, outcome.state) == (Status.FAILED, Code.BREAKER_FAILED, state)
    assert outcome.reason.startswith("P1 alone needs ≈180 tokens, the limit is 100.")
    assert "P1 (p60) ≈60 tokens, P1 (p50) ≈50 tokens, P1 (p40) ≈40 tokens" in outcome.reason
    assert "lower the priority" in outcome.reason
    assert "p30" not in outcome.reason


@pytest.mark.parametrize("beside", [{}, {"overhead_tokens": 31, "answer_tokens": 30}])
def test_an_irreducible_context_is_not_tried_at_all_and_neither_the_answers_room_nor_a_scrap_is_to_blame(
    beside: dict[str, int],
) -> None:
    state = a_state(a_unit("system words " * 60, role=Role.SYSTEM), *a_talk(3), limit=100, **beside)

    outcome = compacted(state, cut=to(60))

    assert (phases(outcome), outcome.reward) == (["detection"], -1.0)
    assert "needs ≈" in outcome.reason
    assert "shorten the system prompt" in outcome.reason
    assert "overhead" not in outcome.reason
    assert "fewer tools" not in outcome.reason


def test_tool_schemas_are_named_when_they_are_to_blame() -> None:
    outcome = compacted(a_state(*a_talk(3), limit=100, overhead_tokens=91), cut=to(60))

    assert "tool schemas and other overhead ≈91 tokens" in outcome.reason
    assert "offer fewer tools" in outcome.reason


def test_recovery_by_error_changes_nothing_and_says_how_far_the_chain_came() -> None:
    state = a_hundred(limit=30)

    outcome = compacted(state, cut=to(60))

    assert (outcome.status, outcome.code, outcome.state) == (Status.FAILED, Code.TOKEN_LIMIT_EXCEEDED, state)
    assert outcome.reason == "The chain came to ≈60 tokens, the limit is 30. Nothing was changed."
    assert "recovery" not in phases(outcome)


def test_what_the_chain_tries_in_vain_after_a_recovery_is_not_told_again() -> None:
    state = a_state(*a_talk(80, words=20), p1(a_unit("word " * 850)), limit=1000)

    outcome = compacted(state, idle=idle)

    assert outcome.estimated_tokens_after > 800
    assert phases(outcome) == ["detection", "idle", "recovery", "handover", "success"]


# What it tells.


def test_steps_say_what_each_strategy_did() -> None:
    outcome = compacted(a_hundred(limit=100), idle=idle, cut=to(60))

    assert [(step.estimated_before, step.estimated_after, step.changed) for step in outcome.steps] == [
        (100, 100, False),
        (100, 100, False),
        (100, 60, True),
        (100, 60, True),
    ]


def test_an_applied_run_accounts_for_what_left_with_coherence_and_reward() -> None:
    outcome = compacted(a_hundred(limit=100), cut=to(60))

    assert outcome.removed_ids == ("t1", "t2", "t3", "t4")
    assert [receipt.source_id for receipt in outcome.coverage] == ["t1", "t2", "t3", "t4"]
    assert outcome.reason == "Context reduced to ≈60 / 100 tokens."
    assert (outcome.counter, outcome.grade) == ("words", "exact")
    assert outcome.coherence is not None
    assert outcome.breaking is not None
    assert outcome.breaking.tokens_reduced == 40
    assert outcome.reward == pytest.approx(1.32 + 0.5 * outcome.breaking.coherence_delta)


def test_what_a_refused_step_read_is_not_counted_as_read() -> None:
    def reading(state: ContextState, kit: Kit) -> StrategyRun:
        yield from ()
        return Attempt(state=state.with_units([]), changed=True, reads=(Read(source_id="t1", read=9, total=9),))

    outcome = compacted(a_hundred(limit=100), reading=reading, cut=to(60))

    assert outcome.coverage[0].read == 0


def test_coherence_is_not_asked_for_when_nobody_wants_it() -> None:
    outcome = run(compact(a_hundred(limit=100), KIT, chain=["cut"], strategies={"cut": to(60)}, judge=False))

    assert (outcome.coherence, outcome.embedder) == (None, "")
    assert outcome.reward == pytest.approx(1.32)


def test_coherence_that_cannot_be_told_is_none_and_costs_nothing_else() -> None:
    def nonsense(need: Need) -> Answer:
        return (
            Embedded(vectors=np.ones(len(need.texts), dtype=np.float32), name="flat")
            if isinstance(need, Embed)
            else None
        )

    running = compact(a_hundred(limit=100), KIT, chain=["cut"], strategies={"cut": to(60)})

    outcome = run(running, answer=nonsense)

    assert outcome.coherence is None
    assert (outcome.status, outcome.reward) == (Status.APPLIED, pytest.approx(1.32))


@pytest.mark.parametrize(("answer", "name"), [(like_marked, "marks"), (lambda need: None, "lexical")])
def test_the_outcome_names_the_embedder_that_answered(answer: Any, name: str) -> None:
    running = compact(a_hundred(limit=100), KIT, chain=["cut"], strategies={"cut": to(60)})

    assert run(running, answer=answer).embedder == name


def test_the_time_of_all_steps_counts_for_the_reward() -> None:
    ticks = iter(range(100))

    outcome = run(
        compact(a_hundred(limit=100), KIT, chain=["cut"], strategies={"cut": to(60)}), clock=lambda: next(ticks)
    )

    assert [step.ms for step in outcome.steps] == [1000, 1000, 1000]
    assert outcome.breaking is not None
    assert outcome.breaking.time_ms == 3000


def test_the_time_that_a_model_took_to_answer_does_not_count_for_the_reward() -> None:
    hand = 0.0

    def pruning(state: ContextState, kit: Kit) -> StrategyRun:
        yield Prune(units=state.units, target_tokens=10)
        return (yield from to(60)(state, kit))

    def slow(need: Need) -> None:
        nonlocal hand
        hand += 30.0 if isinstance(need, Prune) else 0.0

    running = compact(a_hundred(limit=100), KIT, chain=["cut"], strategies={"cut": pruning})
    outcome = run(running, answer=slow, clock=lambda: hand)

    assert sum(step.ms for step in outcome.steps) == 30_000
    assert outcome.breaking is not None
    assert outcome.breaking.time_ms == 0
    assert outcome.reward is not None
    assert outcome.reward > 1


# The ledger.


RULE = "You must never deploy on a Friday."


def a_ruled_talk(*, limit: int = 1600) -> ContextState:
    """Over two thousand tokens, with a rule in the fourth message."""
    return a_state(*a_talk(3), a_unit(RULE), *a_talk(20, start=3, words=100), limit=limit, config=ERROR)


def test_what_the_user_ruled_is_carried_word_for_word_when_its_message_leaves() -> None:
    outcome = compacted(a_ruled_talk(), cut=to(1000))

    assert RULE in texts(outcome.state)
    assert RULE in [entry.text for entry in outcome.ledger]


def test_the_ledger_stands_where_the_first_message_left() -> None:
    state = a_ruled_talk()

    outcome = compacted(state, cut=to(700))

    (place,) = (at for at, unit in enumerate(outcome.state.units) if is_ledger(unit))
    assert ids(outcome.state)[0] == "t0"
    assert {unit.kind for unit in outcome.state.units[1:place]} <= {Kind.PLACEHOLDER}
    assert outcome.state.units[place].timestamp == state.units[1].timestamp


def test_the_ledger_does_not_break_into_a_round() -> None:
    """A result is shortened where it stands, in the middle of its round: the ledger goes before the round."""
    asked, answered = a_round("look it up", "word " * 1000)
    rule = a_unit(RULE)
    state = a_state(a_unit("hello"), asked, answered, rule, *a_talk(4, words=160), limit=1000)
    shorten = making(lambda units: [u.saying("w") if u.id in {answered.id, rule.id} else u for u in units])

    outcome = compacted(state, shorten=shorten)

    assert [unit.round_id for unit in outcome.state.units[:4]] == [None, None, asked.round_id, asked.round_id]
    assert RULE in outcome.state.units[1].content


def test_what_still_stands_is_not_carried_again() -> None:
    state = a_state(a_unit(RULE), *a_talk(20, words=100), limit=1600)

    outcome = compacted(state, cut=to(700))

    assert texts(outcome.state).count(RULE) == 1


def test_strategies_never_see_the_ledger_and_it_survives_five_runs() -> None:
    state = a_ruled_talk()
    seen: list[Unit] = []

    def looking(state: ContextState, kit: Kit) -> StrategyRun:
        seen.extend(state.units)
        return (yield from to(1000)(state, kit))

    for number in range(5):
        outcome = compacted(state, looking=looking)
        grown = (*outcome.state.units, *a_talk(20, start=100 * number + 100, words=100))
        state = outcome.state.with_units(KIT.counted(grown))

    assert texts(outcome.state).count(RULE) == 1
    assert not [unit for unit in seen if is_ledger(unit)]


def test_the_ledger_may_take_what_lies_between_the_goal_and_what_is_acceptable() -> None:
    outcome = compacted(a_ruled_talk(), first=to(1120), second=to(500))

    assert phases(outcome) == ["detection", "first", "success"]
    assert 1120 < outcome.estimated_tokens_after <= 1280


def test_the_ledger_is_never_what_breaks_the_limit() -> None:
    outcome = compacted(a_ruled_talk(limit=1350), cut=to(700))

    assert (outcome.status, outcome.recovered) == (Status.APPLIED, None)
    assert outcome.state.fits


def test_what_the_user_ruled_gets_its_room_back_from_what_may_go_though_that_frees_nothing() -> None:
    """The first step fits only because the ledger has no room; the second drops less than the ledger takes."""
    filler = a_unit("word " * 25, id="filler", role=Role.ASSISTANT)
    state = a_state(a_unit("hello"), a_unit(RULE), *a_talk(20, words=100), filler, a_unit("go on"), limit=1530)
    drop = making(lambda units: [unit for unit in units if unit.id != "filler"])

    outcome = compacted(state, first=to(1530), second=drop)

    assert "filler" not in ids(outcome.state)
    assert RULE in texts(outcome.state)
    assert outcome.state.fits


def test_what_the_user_ruled_is_told_again_by_a_later_pass_where_the_one_before_had_no_room_for_it() -> None:
    """Each pass drops some: after the first one what is left fits exactly, without a ledger."""
    state = a_state(a_unit("hello"), a_unit(RULE), *a_talk(20, words=100), a_unit("go on"), limit=1503, config=ERROR)
    sizes = iter((1503, 1203))

    outcome = compacted(state, shrink=lambda state, kit: to(next(sizes, 1203))(state, kit))

    assert RULE in texts(outcome.state)
    assert outcome.state.fits


def test_filler_goes_where_it_would_stand_in_the_place_of_what_the_user_ruled() -> None:
    """The chain ends with what fits exactly, and no strategy comes that would drop more."""
    state = a_state(a_unit("hello"), a_unit(RULE), *a_talk(20, words=100), a_unit("go on"), limit=1503, config=ERROR)

    outcome = compacted(state, only=to(1503))

    assert RULE in texts(outcome.state)
    assert outcome.state.fits
    assert [step.phase for step in outcome.steps if step.changed] == ["only", "select_passages", "success"]


def test_passages_that_were_chosen_last_are_worth_more_than_what_is_no_rule() -> None:
    budget = "The budget is 4,000 euros."
    state = a_state(a_unit("hello"), a_unit(budget), *a_talk(20, words=100), a_unit("go on"), limit=1503, config=ERROR)

    assert budget in texts(compacted(state, only=to(1503)).state)
    assert budget not in texts(compacted(state, select_passages=to(1503)).state)
