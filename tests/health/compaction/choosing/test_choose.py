"""The greedy choice: what adds most for its tokens first, and never more than the budget."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health.compaction.choosing.choose import GAP_TOKENS, Candidate, Chooser
from health.compaction.reading.features import DIMINISHING, Features


def chooser(
    texts: list[str],
    *,
    tokens: int = 10,
    leans: dict[int, tuple[int, ...]] | None = None,
    groups: Sequence[int] = range(99),
    label: int = 0,
) -> Chooser:
    features = Features(texts, from_tool=[False] * len(texts))
    candidates = [
        Candidate(tokens=tokens, prior=1.0, group=group, label=label, leans_on=(leans or {}).get(at, ()))
        for at, group in zip(range(len(texts)), groups, strict=False)
    ]
    return Chooser(candidates, features)


def test_what_says_most_comes_first() -> None:
    made = chooser(["well now", "Marta pays 840 euros in Porto", "the cat sleeps"])

    assert made.choose(30)[0] == 1


def test_what_says_nothing_or_may_not_be_chosen_from_is_never_chosen() -> None:
    assert chooser(["well now", "it is", "you and me"]).choose(100) == []
    assert chooser(["stone", "heron", "brook"]).choose(50, among=[1]) == [1]


def test_the_second_telling_of_the_same_comes_after_something_new() -> None:
    made = chooser(["Marta lives in Porto", "Marta lives in Porto", "a heron stood still"])

    assert made.choose(20) in ([0, 2], [1, 2], [2, 0], [2, 1])


def test_what_is_told_again_and_again_adds_less_and_then_nothing() -> None:
    assert len(chooser(["Marta lives in Porto"] * 9).choose(99)) == len(DIMINISHING)


@pytest.mark.parametrize(
    ("texts", "leans", "budget", "among", "chosen"),
    [
        # It is worth what it brings along.
        (["Terminal 7 near Kauppatori", "it is"], {1: (0,)}, 50, [1], [0, 1]),
        (["shall we", "Terminal 7 near Kauppatori"], {1: (0,)}, 20, None, [0, 1]),
        (["shall we", "so it is", "Terminal 7 near Kauppatori"], {2: (0, 1)}, 30, None, [0, 1, 2]),
        # Where only it fits but not what it leans on it is left out.
        (["will you", "Terminal 7 near Kauppatori"], {1: (0,)}, 15, None, []),
    ],
)
def test_what_a_chunk_leans_on_comes_right_before_it(
    texts: list[str], leans: dict[int, tuple[int, ...]], budget: int, among: list[int] | None, chosen: list[int]
) -> None:
    assert chooser(texts, leans=leans).choose(budget, among=among) == chosen


def test_of_all_alike_the_neighbours_of_what_stands_are_preferred() -> None:
    made = chooser(["stone", "heron", "Marta pays 840 euros in Porto", "brook"], groups=[0, 1, 1, 1], tokens=100)

    assert made.choose(500) == [2, 1, 3, 0]


@pytest.mark.parametrize(("budget", "chosen"), [(19, [2]), (20, [2, 0])])
def test_filling_goes_on_to_the_last_token_and_ends_at_the_first_that_does_not_fit(
    budget: int, chosen: list[int]
) -> None:
    made = chooser(["it is", "well now", "shall we"])

    made.fill([2, 0, 1], budget)

    assert made.chosen == chosen


def test_what_is_chosen_already_costs_nothing_again() -> None:
    made = chooser(["it is", "well now"])

    made.take([0, 0])
    made.fill([0, 1], 10)

    assert made.chosen == [0, 1]
    assert made.spent == 20


def test_a_chunk_costs_a_token_at_least_though_the_gap_that_it_closes_was_as_long() -> None:
    made = chooser(["Marta lives here", "a heron stood"], tokens=GAP_TOKENS, groups=[0, 0])

    made.choose(50)

    assert made.spent == GAP_TOKENS + 1


def test_those_of_one_message_of_which_nothing_stands_cost_its_label_once() -> None:
    assert chooser(["it is", "well now"], groups=[0, 0], label=5).cost([0, 1]) == 25


@pytest.mark.parametrize(
    ("groups", "leans", "taken", "spent"),
    [
        ([0, 1], {}, [0, 1], 15 + 15),
        ([0, 0, 0], {}, [0, 2], 15 + 10),
        ([0, 0], {}, [0, 1], 15 + 10 - GAP_TOKENS),
        ([0, 0], {}, [1, 0], 15 + 10 - GAP_TOKENS),
        ([0, 1], {1: (0,)}, [1], 15 + 15),
        ([0, 0], {1: (0,)}, [1], 15 + 10),
        ([0, 1], {1: (0,)}, [0, 1], 15 + 15),
        ([0, 0, 1], {2: (1,)}, [0, 2], 15 + 15 + 10),
    ],
    ids=[
        "two messages",
        "one",
        "no gap",
        "nor backwards",
        "leans on another",
        "on its own",
        "on what stands",
        "on a part of what stands",
    ],
)
def test_the_first_of_a_message_costs_its_label_too(
    groups: list[int], leans: dict[int, tuple[int, ...]], taken: list[int], spent: int
) -> None:
    made = chooser(["stone", "heron", "brook"][: len(groups)], groups=groups, leans=leans, label=5)

    made.take(taken)

    assert made.spent == spent


@given(st.lists(st.text(alphabet="abAB12 ", max_size=12), max_size=12), st.integers(0, 60))
def test_the_budget_is_never_exceeded_and_nothing_is_chosen_twice(texts: list[str], budget: int) -> None:
    made = chooser(texts, tokens=7)

    chosen = made.choose(budget)

    assert len(chosen) == len(set(chosen))
    assert 7 * len(chosen) <= budget
