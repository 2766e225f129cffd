"""The rivals: each within the limit where it claims to be, and with whole rounds."""

from __future__ import annotations

import pytest

from benchmarks.devset import cases
from benchmarks.figures import drawn
from benchmarks.peers import QUICK, cuts, first_plan, lexrank
from benchmarks.quality import judged
from benchmarks.scoring import broken_pairs, tokens

# Written down as they are, faults included: the plan's fallback, the plan's window and chain.
AS_WRITTEN = {"system + last 5", "sliding window", "the first plan"}


@pytest.mark.parametrize("name", sorted(set(QUICK) - AS_WRITTEN))
def test_a_rival_obeys_the_limit_and_keeps_rounds_whole(name: str) -> None:
    (case,) = cases("service", 2, 1, chars=12_000)
    limit = tokens(case.messages) // 4
    result = QUICK[name](case.messages, limit, case.task)
    assert limit // 8 < tokens(result) <= limit
    assert broken_pairs(result) == 0
    assert result[-1] == case.messages[-1]


def test_lexrank_chooses_sentences_of_the_conversation() -> None:
    (case,) = cases("chat", 2, 1, chars=12_000)
    digest = lexrank(case.messages, tokens(case.messages) // 4, "")[1]["content"]
    assert all(any(line in str(message["content"]) for message in case.messages) for line in digest.splitlines())


def test_seed_4_as_written_may_return_an_empty_conversation() -> None:
    (case,) = cases("chat", 2, 1, chars=12_000)
    assert first_plan(case.messages, tokens(case.messages) // 10, "") == []


def test_a_conversation_grows_by_whole_rounds() -> None:
    (case,) = cases("service", 2, 1, chars=12_000)
    seen: list[list[dict[str, object]]] = []
    judged(lambda messages, limit, task: seen.append(list(messages)) or [], case, ratio=0.1, known=True, repeat=True)
    assert len(seen) == 3
    assert [message for stage in seen for message in stage] == case.messages
    assert all(broken_pairs(stage) == 0 for stage in seen)


def test_a_cut_is_a_round_or_a_message() -> None:
    roles = ["system", "user", "assistant", "tool", "tool", "user"]
    assert cuts([{"role": role} for role in roles]) == [[0], [1], [2, 3, 4], [5]]


def test_the_interval_holds_the_mean_and_widens_with_spread() -> None:
    low, high = drawn([[10], [12], [8], [11], [9], [10]])
    assert low < 10 < high
    wide = drawn([[40], [-20], [10], [30], [-10], [10]])
    assert wide[1] - wide[0] > high - low
