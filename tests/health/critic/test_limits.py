"""The replay, and the limits that are proposed from it: enough, no more than that, and never past the window."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from health.critic.replay import Finding, Growth, ReplayTotals, Rules, Subject, limit_change, replay

FOUND = [Finding(code="OVER_HIT", agent_id=1, count=5)]
RULES = Rules(limit=5000)


def a_course(*sizes: int, base: int = 500) -> Growth:
    """A person's message and the agent's answer in turns."""
    return Growth(base=base, sizes=sizes, asks=tuple(at % 2 == 0 for at in range(len(sizes))))


def a_subject(*growths: Growth, limit: int = 5000, cap: int | None = 30_000, factor: float = 1.0) -> Subject:
    return Subject(agent_id=1, limit=limit, cap=cap, rules=RULES, factor=factor, growths=growths)


# Each request brings 2,500 tokens: a context at 70 % of 5,000 is over with the next.
JUMPS = a_course(*([2500, 100] * 12))


def test_a_course_that_stays_small_is_only_sent() -> None:
    assert replay([a_course(1000, 500, 1000)], RULES) == ReplayTotals(requests=2, tokens_sent=1500 + 3000)


def test_a_request_above_the_limit_is_an_over_hit_and_is_compacted_to_the_goal() -> None:
    found = replay([a_course(3000, 400, 1500)], RULES)

    assert (found.over_hits, found.compactions, found.failures) == (1, 1, 0)
    assert found.tokens_removed == 5400 - 3500


def test_what_is_larger_than_the_limit_by_itself_fails() -> None:
    assert replay([a_course(6000)], RULES).failures == 1


def test_what_was_said_meanwhile_counts_with_the_next_request() -> None:
    assert replay([Growth(base=0, sizes=(3000, 3000), asks=(True, False))], RULES).over_hits == 0


def test_it_says_with_which_message_a_course_is_above_something() -> None:
    course = a_course(1000, 1000, 1000)

    assert [course.begins_at(above) for above in (400, 1500, 3500)] == [0, 2, None]


def test_the_smallest_limit_that_helps_enough_is_proposed() -> None:
    change = limit_change(a_subject(JUMPS), FOUND)

    assert change is not None
    assert change.then.over_hits <= 0.2 * change.now.over_hits
    lower = replay([JUMPS], Rules(limit=change.after - 800))
    assert lower.over_hits > 0.2 * change.now.over_hits


def test_without_a_window_with_room_a_finding_and_trouble_in_the_replay_nothing_is_proposed() -> None:
    assert limit_change(a_subject(JUMPS, cap=5050), FOUND) is None
    assert limit_change(a_subject(JUMPS, cap=None), FOUND) is None
    assert limit_change(a_subject(JUMPS), []) is None
    assert limit_change(a_subject(a_course(100, 100, 100)), FOUND) is None


def test_where_the_window_allows_part_of_it_the_best_is_proposed_if_it_is_worth_it() -> None:
    often_and_rarely = a_course(*([2500, 100] * 12), *([9000, 100] * 4))

    change = limit_change(a_subject(often_and_rarely, cap=9600), FOUND)

    assert change is not None
    assert change.after <= 9600
    assert 0 < change.then.over_hits <= change.now.over_hits / 2


def test_incoherence_is_answered_with_fewer_compactions() -> None:
    steady = a_course(*([300, 300] * 30))

    change = limit_change(a_subject(steady), [Finding(code="COHERENCE_DROP", agent_id=1, count=3)])

    assert change is not None
    assert change.now.over_hits == 0
    assert change.then.compactions <= change.now.compactions / 2


sizes = st.lists(st.integers(0, 20_000), min_size=1, max_size=40)


@given(
    growths=st.lists(sizes, min_size=1, max_size=4),
    limit=st.integers(3500, 20_000),
    cap=st.integers(1024, 40_000),
    factor=st.sampled_from([1.0, 1.2]),
)
def test_no_proposal_is_ever_past_the_window_or_makes_it_worse(
    growths: list[list[int]], limit: int, cap: int, factor: float
) -> None:
    subject = a_subject(*(a_course(*each) for each in growths), limit=limit, cap=cap, factor=factor)

    change = limit_change(subject, FOUND)

    if change is not None:
        assert limit < change.after
        assert change.after * factor <= cap
        assert change.then.over_hits <= change.now.over_hits / 2
