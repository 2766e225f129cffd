"""Orders of the chain: what runs under both can tell, what they cannot, and that luck is not taken for skill."""

from __future__ import annotations

import random

import pytest

from health.critic.chains import Chain, LoggedRun, RewardedRun, chain_change, compare

DEFAULT_CHAIN, RECENT_FIRST = ("summarize_old", "prioritize_recent"), ("prioritize_recent", "summarize_old")
THIRD = ("discard_low_rel",)


def runs(
    chain: Chain, count: int, *, mean: float, llm: str = "local/tiny", seed: int = 1, excess: float = 1.2
) -> list[RewardedRun]:
    """Rewards around a mean; the more there is too much, the less a run earns, whatever the order."""
    chance = random.Random(f"{seed}{chain}{llm}{excess}")
    overs = [chance.uniform(excess - 0.15, excess + 0.15) for _each in range(count)]
    rewards = [mean - (over - 1) + chance.gauss(0, 0.2) for over in overs]
    return [
        RewardedRun(llm=llm, chain=chain, limit=5000, estimated=int(5000 * over), reward=reward)
        for over, reward in zip(overs, rewards, strict=True)
    ]


def test_an_order_that_earns_more_is_proposed_with_its_bounds() -> None:
    logged = runs(DEFAULT_CHAIN, 80, mean=1.0) + runs(RECENT_FIRST, 60, mean=1.3)

    change = chain_change(logged, before=DEFAULT_CHAIN)

    assert change is not None
    assert change.after == RECENT_FIRST
    assert 0 < change.gain.lower < change.gain.difference < change.gain.upper
    assert abs(change.gain.difference - 0.3) < 0.15
    assert (change.gain.runs, change.gain.runs_of_baseline) == (60, 80)


def test_an_order_that_was_never_in_force_cannot_be_judged() -> None:
    assert chain_change(runs(DEFAULT_CHAIN, 500, mean=1.0), before=DEFAULT_CHAIN) is None


@pytest.mark.parametrize("count", [29, 4])
def test_a_few_runs_are_not_enough_evidence(count: int) -> None:
    assert (
        chain_change(runs(DEFAULT_CHAIN, 80, mean=0.5) + runs(RECENT_FIRST, count, mean=1.9), before=DEFAULT_CHAIN)
        is None
    )


def test_runs_with_different_llms_say_nothing_about_the_order() -> None:
    logged = runs(DEFAULT_CHAIN, 80, mean=0.5, llm="local/tiny") + runs(RECENT_FIRST, 80, mean=1.5, llm="cloud/large")

    assert chain_change(logged, before=DEFAULT_CHAIN) is None


def test_an_order_that_only_had_the_easier_cases_is_not_taken_for_better() -> None:
    """By plain means it looks better by far: it ran where there was little to do."""
    hard, easy = 1.8, 0.9
    logged = [
        *runs(DEFAULT_CHAIN, 120, mean=1.0, excess=hard), *runs(DEFAULT_CHAIN, 30, mean=1.0, excess=easy - 0.05),
        *runs(RECENT_FIRST, 30, mean=1.0, excess=hard), *runs(RECENT_FIRST, 120, mean=1.0, excess=easy - 0.05),
    ]  # fmt: skip

    plain = _mean(logged, RECENT_FIRST) - _mean(logged, DEFAULT_CHAIN)

    assert plain > 0.3
    assert chain_change(logged, before=DEFAULT_CHAIN) is None


def _mean(logged: list[RewardedRun], chain: Chain) -> float:
    found = [run.reward for run in logged if run.chain == chain]
    return sum(found) / len(found)


def test_what_helps_one_llm_and_harms_another_is_not_proposed_for_all() -> None:
    logged = [
        *runs(DEFAULT_CHAIN, 60, mean=0.5), *runs(RECENT_FIRST, 200, mean=1.5),
        *runs(DEFAULT_CHAIN, 40, mean=1.5, llm="cloud/large"), *runs(RECENT_FIRST, 40, mean=0.9, llm="cloud/large"),
    ]  # fmt: skip

    assert chain_change(logged, before=DEFAULT_CHAIN) is None


def test_of_several_the_surest_is_proposed() -> None:
    logged = runs(DEFAULT_CHAIN, 80, mean=1.0) + runs(RECENT_FIRST, 80, mean=1.4) + runs(THIRD, 80, mean=1.2)

    change = chain_change(logged, before=DEFAULT_CHAIN)

    assert change is not None
    assert change.after == RECENT_FIRST


def test_equal_orders_are_told_apart_no_more_often_than_the_interval_allows() -> None:
    """Half of the five per cent lie above: of 400 equal pairs about 10, and never 25."""
    proposed = [
        chain_change(
            runs(DEFAULT_CHAIN, 60, mean=1.0, seed=seed) + runs(RECENT_FIRST, 60, mean=1.0, seed=seed),
            before=DEFAULT_CHAIN,
        )
        for seed in range(400)
    ]

    assert sum(change is not None for change in proposed) < 25


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    held = 0
    for seed in range(300):
        logged = runs(DEFAULT_CHAIN, 60, mean=1.0, seed=seed) + runs(RECENT_FIRST, 60, mean=1.2, seed=seed)
        found = compare([run.logged for run in logged], action=",".join(RECENT_FIRST), baseline=",".join(DEFAULT_CHAIN))
        assert found is not None
        held += found.lower <= 0.2 <= found.upper

    assert held / 300 > 0.9


def test_runs_that_alternate_are_as_good_as_others() -> None:
    first, second = runs(DEFAULT_CHAIN, 60, mean=1.0), runs(RECENT_FIRST, 60, mean=1.3)
    alternating = [run.logged for pair in zip(first, second, strict=True) for run in pair]

    found = compare(alternating, action=",".join(RECENT_FIRST), baseline=",".join(DEFAULT_CHAIN))

    assert found is not None
    assert abs(found.difference - 0.3) < 0.1


def test_without_any_runs_there_is_no_evidence() -> None:
    nothing: list[LoggedRun] = []

    assert compare(nothing, action="a", baseline="b") is None
