"""keep_last_five: what is protected and the last five messages, by whole rounds."""

from __future__ import annotations

from health.compaction.config import ContextConfig, DiscardLowRel, PlaceholderDetail
from health.compaction.laws.invariants import broken
from health.compaction.strategies.keep_last_five import keep_last_five, passages_keep_last_five
from health.compaction.terms.units import Role, Unit, total
from health.compaction.trimming.clamp import LEAST_TOKENS
from tests.health.compaction.builders import (
    a_round,
    a_state,
    a_talk,
    a_unit,
    p3,
    pinned,
    placeholders_in,
    play,
    texts,
)

AMPLE = 100_000


def left(*units: Unit, limit: int = AMPLE) -> list[str]:
    """The ids that are left, without the placeholder's."""
    after = play(keep_last_five, a_state(*units, limit=limit)).state
    return [unit.id for unit in after.units if unit not in placeholders_in(after)]


def test_the_last_five_messages_and_the_first_request_stay_and_nothing_else() -> None:
    assert left(*a_talk(20)) == ["t0", "t15", "t16", "t17", "t18", "t19"]


def test_a_short_history_has_its_system_prompt_once() -> None:
    """The first plan's fallback doubled it where there were five messages or fewer."""
    assert left(a_unit("be kind", role=Role.SYSTEM, id="s"), *a_talk(4)) == ["s", "t0", "t1", "t2", "t3"]


def test_p3_goes_like_all_others() -> None:
    units = a_talk(20)

    assert "t3" not in left(*units[:3], p3(units[3]), *units[4:])


def test_a_round_that_begins_before_the_last_five_stays_whole() -> None:
    """The first plan's fallback parted calls from results, and providers refuse that."""
    units = (*a_talk(10), *a_round("look", "one", "two", "three", id="r"), *a_talk(3, start=10))

    assert left(*units)[-7:] == ["r-a", "r-t0", "r-t1", "r-t2", "t10", "t11", "t12"]


def test_a_round_before_the_last_five_goes_whole() -> None:
    units = (*a_talk(2), *a_round("look", "found " * 9, id="r"), *a_talk(8, start=2))

    assert not {"r-a", "r-t0"} & set(left(*units))


def test_a_linked_placeholder_names_what_went() -> None:
    linked = ContextConfig(discard_low_rel=DiscardLowRel(placeholder_detail=PlaceholderDetail.LINKED))

    (told,) = placeholders_in(play(keep_last_five, a_state(*a_talk(20), limit=AMPLE, config=linked)).state)

    assert told.content.endswith("14 messages: t1 to t14")


def test_five_messages_stay_as_they_are() -> None:
    state = a_state(*a_talk(5), limit=AMPLE)

    attempt = play(keep_last_five, state)

    assert (attempt.changed, attempt.state) == (False, state)
    assert attempt.note == "nothing but the last messages and what is protected"


def test_if_five_do_not_fit_the_oldest_of_them_go_and_no_more_than_must() -> None:
    assert left(*a_talk(20, words=30), limit=160) == ["t0", "t16", "t17", "t18", "t19"]


def test_the_last_three_messages_stay_in_every_case() -> None:
    assert left(*a_talk(20, words=100), limit=50)[-3:] == ["t17", "t18", "t19"]


def with_large_results(limit: int) -> tuple[Unit, ...]:
    units = (*a_talk(10), *a_round("look", "big " * 1000, "small " * 130, id="r"), *a_talk(1, start=10))
    return play(keep_last_five, a_state(*units, limit=limit)).state.units


def named(units: tuple[Unit, ...], name: str) -> Unit:
    return next(unit for unit in units if unit.id == name)


def test_then_the_largest_result_is_shortened_and_a_smaller_stays_whole_while_that_is_enough() -> None:
    after = with_large_results(limit=600)

    assert total(after) <= 600
    assert ["characters archived" in named(after, name).content for name in ("r-t0", "r-t1")] == [True, False]


def test_a_shortened_result_keeps_its_beginning_and_its_end() -> None:
    units = (*a_talk(10), *a_round("look", "START " + "big " * 1000 + "END", id="r"), *a_talk(1, start=10))

    after = play(keep_last_five, a_state(*units, limit=400)).state

    short = named(after.units, "r-t0").content
    assert short.startswith("START")
    assert short.endswith("END")


def test_a_result_is_never_shortened_to_nothing() -> None:
    after = with_large_results(limit=1)

    assert LEAST_TOKENS / 2 < total([named(after, "r-t0")]) <= LEAST_TOKENS


def test_a_result_in_a_pinned_round_stays_whole() -> None:
    asked, answered = a_round("look", "big " * 1000, id="r")
    state = a_state(*a_talk(10), pinned(asked), answered, *a_talk(1, start=10), limit=100)

    assert "big " * 1000 in texts(play(keep_last_five, state).state)


def test_where_it_fits_no_result_is_shortened() -> None:
    assert "characters archived" not in named(with_large_results(limit=AMPLE), "r-t0").content


def test_what_is_sent_besides_units_counts() -> None:
    state = a_state(*a_talk(20, words=30), limit=260, overhead_tokens=100)

    assert play(keep_last_five, state).state.fits


def test_chinese_is_kept_and_dropped_alike() -> None:
    units = [a_unit("预算是五百元" * 5, id=f"z{i}", role=Role.ASSISTANT if i % 2 else Role.USER) for i in range(12)]

    assert left(*units) == ["z0", "z7", "z8", "z9", "z10", "z11"]


def test_a_grown_context_keeps_one_placeholder() -> None:
    once = play(keep_last_five, a_state(*a_talk(20), limit=AMPLE)).state
    grown = a_state(*once.units, *a_talk(6, start=20), limit=AMPLE)

    (told,) = placeholders_in(play(keep_last_five, grown).state)

    assert told.content.endswith("20 messages")


def test_half_of_a_long_chat_goes_at_least_and_one_placeholder_stands_at_the_gap() -> None:
    """A reduction of 40 to 60 percent, or more."""
    state = a_state(*a_talk(20), limit=AMPLE)

    after = play(keep_last_five, state).state

    assert after.estimated_tokens <= 0.6 * state.estimated_tokens
    assert after.units[1].content == "[Omitted earlier context]\n14 messages"
    assert len(placeholders_in(after)) == 1


# With passages of all that was said before.


def test_passages_stand_beside_the_last_five_messages() -> None:
    told = a_unit("The gate code is Z-4471.", id="told", role=Role.ASSISTANT)
    state = a_state(*a_talk(10, words=30), told, *a_talk(20, start=10, words=30), limit=390)

    attempt = play(passages_keep_last_five, state)

    assert broken(state.units, attempt.state.units) == []
    assert attempt.state.units[-5:] == state.units[-5:]
    assert "Z-4471" in texts(attempt.state)
    assert attempt.state.estimated_tokens <= 280


def test_nothing_is_pinned_by_it() -> None:
    state = a_state(*a_talk(30, words=30), limit=400)

    assert not any(unit.pinned for unit in play(passages_keep_last_five, state).state.units)


def test_where_the_last_five_leave_no_room_it_changes_nothing() -> None:
    state = a_state(*a_talk(30, words=100), limit=400)

    assert not play(passages_keep_last_five, state).changed
