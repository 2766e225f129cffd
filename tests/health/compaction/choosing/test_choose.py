"""The greedy choice: what adds most for its tokens first, and never more than the budget."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from health.compaction.choosing.choose import Candidate, Chooser
from health.compaction.reading.features import Features


def chooser(
    texts: list[str], *, tokens: int = 10, leans: dict[int, tuple[int, ...]] | None = None, group: bool = False
) -> Chooser:
    features = Features(texts, from_tool=[False] * len(texts))
    candidates = [
        Candidate(tokens=tokens, prior=1.0, group=0 if group else at, label=0, leans_on=(leans or {}).get(at, ()))
        for at in range(len(texts))
    ]
    return Chooser(candidates, features)


def test_what_says_most_comes_first() -> None:
    made = chooser(["well now", "Marta pays 840 euros in Porto", "the cat sleeps"])

    assert made.choose(30)[0] == 1


def test_what_says_nothing_is_never_chosen() -> None:
    assert chooser(["well now", "it is", "you and me"]).choose(100) == []


def test_the_second_telling_of_the_same_comes_after_something_new() -> None:
    made = chooser(["Marta lives in Porto", "Marta lives in Porto", "a heron stood still"])

    assert made.choose(20) in ([0, 2], [1, 2], [2, 0], [2, 1])


def test_what_a_chunk_leans_on_comes_right_before_it() -> None:
    made = chooser(["shall we", "Terminal 7 near Kauppatori"], leans={1: (0,)})

    assert made.choose(20) == [0, 1]


def test_it_may_lean_on_several() -> None:
    made = chooser(["shall we", "so it is", "Terminal 7 near Kauppatori"], leans={2: (0, 1)})

    assert made.choose(30) == [0, 1, 2]


def test_a_chunk_is_left_out_where_only_it_fits_but_not_what_it_leans_on() -> None:
    assert chooser(["will you", "Terminal 7 near Kauppatori"], leans={1: (0,)}).choose(15) == []


def test_of_two_alike_the_neighbour_of_what_stands_is_preferred() -> None:
    made = chooser(["Marta pays 840 euros in Porto", "heron", "stone"], group=True)

    assert made.choose(20)[:2] == [0, 1]


@given(st.lists(st.text(alphabet="abAB12 ", max_size=12), max_size=12), st.integers(0, 60))
def test_the_budget_is_never_exceeded_and_nothing_is_chosen_twice(texts: list[str], budget: int) -> None:
    made = chooser(texts, tokens=7)

    chosen = made.choose(budget)

    assert len(chosen) == len(set(chosen))
    assert 7 * len(chosen) <= budget
