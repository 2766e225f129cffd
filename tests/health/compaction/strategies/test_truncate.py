"""truncate: the oldest unprotected cuts go until the goal is reached."""

from __future__ import annotations

from dataclasses import replace

from health.compaction.config import ContextConfig, DiscardLowRel, PlaceholderDetail
from health.compaction.strategies.truncate import truncate
from health.compaction.terms.units import Role
from tests.health.compaction.builders import (
    KIT,
    WordCounter,
    a_round,
    a_state,
    a_talk,
    a_unit,
    broken_laws,
    ids,
    p1,
    p3,
    placeholders_in,
    play,
)

LINKED = ContextConfig(discard_low_rel=DiscardLowRel(placeholder_detail=PlaceholderDetail.LINKED))


def test_the_oldest_go_first_and_no_more_than_the_goal_needs_and_one_placeholder_tells_how_many_and_when() -> None:
    units = a_talk(10)

    after = play(truncate, a_state(*units, limit=100)).state

    (told,) = placeholders_in(after)
    assert ids(after) == ["t0", told.id, "t5", "t6", "t7", "t8", "t9"]
    assert 60 < after.estimated_tokens <= 70
    assert (told.content, told.timestamp) == ("[Omitted earlier context]\n4 messages", units[1].timestamp)


def test_another_goal_is_aimed_at() -> None:
    state = a_state(*a_talk(10), limit=100, config=ContextConfig(goal=0.5))

    assert play(truncate, state).state.estimated_tokens <= 50


def test_a_state_at_the_goal_stays_as_it_is() -> None:
    state = a_state(*a_talk(7), limit=100)

    attempt = play(truncate, state)

    assert (attempt.changed, attempt.state, attempt.note) == (False, state, "already at the goal")


def test_what_is_sent_besides_units_counts() -> None:
    state = a_state(*a_talk(7), limit=100, overhead_tokens=30)

    assert play(truncate, state).state.estimated_tokens <= 70


def test_one_message_larger_than_the_limit_stays() -> None:
    state = a_state(*a_talk(1, words=500), limit=100)

    attempt = play(truncate, state)

    assert (attempt.changed, attempt.note) == (False, "nothing unprotected to drop")


def test_p3_goes_like_all_others() -> None:
    units = a_talk(10)
    state = a_state(units[0], p3(units[1]), *units[2:], limit=100)

    assert "t1" not in ids(play(truncate, state).state)


def test_a_round_goes_whole() -> None:
    state = a_state(*a_talk(2), *a_round("look", "found " * 9, "more " * 9, id="r"), *a_talk(6, start=2), limit=100)

    after = play(truncate, state)

    assert not [one for one in ids(after.state) if one.startswith("r-")]
    assert broken_laws(state, after) == []


def test_one_placeholder_tells_of_all_gaps_around_what_is_protected() -> None:
    units = a_talk(12)
    state = a_state(*units[:3], p1(units[3]), *units[4:], limit=60)

    (told,) = placeholders_in(play(truncate, state).state)

    assert "t2" in told.source_ids
    assert "t4" in told.source_ids


def test_a_linked_placeholder_names_what_went() -> None:
    (told,) = placeholders_in(play(truncate, a_state(*a_talk(10), limit=100, config=LINKED)).state)

    assert told.content.startswith("[Omitted – see archive]\n")
    assert "t1 to t" in told.content


def test_a_second_run_leaves_one_placeholder_for_both() -> None:
    once = play(truncate, a_state(*a_talk(10), limit=100)).state

    twice = play(truncate, replace(once, limit=80)).state

    (told,) = placeholders_in(twice)
    assert told.source_ids[0] == "t1"
    assert len(told.source_ids) > 4


def test_messages_smaller_than_their_placeholder_are_not_worth_dropping() -> None:
    state = a_state(*a_talk(1, words=90), a_unit("ok", role=Role.ASSISTANT), *a_talk(1, start=2), limit=100)

    attempt = play(truncate, state)

    assert (attempt.changed, attempt.note) == (False, "what could be dropped is smaller than its placeholder")


def test_chinese_is_dropped_by_its_tokens_not_by_its_words() -> None:
    units = [a_unit("预算是五百元" * 3, id=f"z{i}", role=Role.USER if i % 2 else Role.ASSISTANT) for i in range(8)]
    state = a_state(*units, limit=100)

    after = play(truncate, state)

    assert after.state.estimated_tokens <= 70
    assert broken_laws(state, after) == []


def test_what_a_message_costs_besides_its_words_is_counted() -> None:
    kit = replace(KIT, counter=WordCounter(per_message=4))
    state = a_state(*a_talk(10), limit=140, kit=kit)

    after = play(truncate, state, kit=kit).state

    assert 80 < after.estimated_tokens <= 98
