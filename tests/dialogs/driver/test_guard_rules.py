"""The guard's rules in `decide`: pure, one state at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dialogs.driver.decide import (
    Action,
    AwaitCompaction,
    CarryNotice,
    ClearMind,
    Compact,
    Generate,
    Halt,
    NoteStuck,
    Refuse,
    RunTools,
    decide,
)
from dialogs.driver.state import Guarding, Leaf, Policy, State
from health.compaction.pressure import Pressure
from health.compaction.reasons import Reason, Why
from health.monitor.remediation import Due

POLICY = Policy()
HIGH = Guarding(pressure=Pressure.HIGH)
WHY = Reason(Why.TOO_SMALL, {"usable": 960, "window": 1200, "least": 1024})


def due(guard: Guarding | None, **more: object) -> State:
    return replace(State(answer_due=True, guard=guard), **more)


def decided(guard: Guarding | None, **more: object) -> Action:
    return decide(due(guard, **more), POLICY)


@pytest.mark.parametrize("level", [Pressure.HIGH, Pressure.SEVERE, Pressure.OVERFLOW])
def test_above_the_threshold_it_compacts_before_it_asks(level: Pressure) -> None:
    assert decided(Guarding(pressure=level)) == Compact("pre_request")


def test_under_the_threshold_it_asks() -> None:
    assert decided(Guarding(pressure=Pressure.NORMAL)) == Generate(attempt=1)


def test_nobody_is_compacted_who_is_not_guarded() -> None:
    assert decided(None) == Generate(attempt=1)


def test_a_tools_result_is_the_reason_where_it_is_the_newest_message() -> None:
    assert decided(HIGH, leaf=Leaf.RESULT) == Compact("tool_result")


def test_an_answer_that_was_cut_is_the_reason_where_it_goes_on() -> None:
    assert decided(HIGH, leaf=Leaf.INSERTED, continuing=True) == Compact("stream")


def test_what_was_tried_from_this_message_is_not_tried_again() -> None:
    assert decided(replace(HIGH, tried=True, compactions=1)) == Generate(attempt=1)


def test_what_was_compacted_for_this_request_and_still_does_not_fit_is_compacted_again() -> None:
    still = Guarding(pressure=Pressure.OVERFLOW, tried=True, compactions=1)

    assert decided(still) == Compact("pre_request")


def test_what_was_compacted_just_before_is_spared_while_it_fits() -> None:
    assert decided(replace(HIGH, spared=True)) == Generate(attempt=1)
    assert decided(Guarding(pressure=Pressure.OVERFLOW, spared=True)) == Compact("pre_request")


def test_what_gained_nothing_is_not_tried_again() -> None:
    assert decided(replace(HIGH, vain=True)) == Generate(attempt=1)
    assert decided(Guarding(pressure=Pressure.OVERFLOW, vain=True)) == Refuse()


def test_where_compaction_cannot_free_more_that_is_said_and_nothing_runs() -> None:
    assert decided(replace(HIGH, stuck=WHY)) == NoteStuck("pre_request", WHY)


def test_switched_off_nothing_is_compacted_and_only_a_silent_cut_is_refused() -> None:
    assert decided(Guarding(pressure=Pressure.OVERFLOW, off=True)) == Generate(attempt=1)
    assert decided(Guarding(pressure=Pressure.OVERFLOW, off=True, refused=WHY)) == Refuse(WHY)


def test_switched_off_a_refusal_is_told_and_nothing_is_opened() -> None:
    assert decided(Guarding(pressure=Pressure.NORMAL, off=True), overflowed=True) == Refuse()


def test_the_fourth_compaction_of_a_request_is_not_made() -> None:
    assert decided(replace(HIGH, compactions=3)) == Generate(attempt=1)


def test_after_an_undo_what_fits_is_sent_as_the_person_wants_it() -> None:
    assert decided(replace(HIGH, held=True)) == Generate(attempt=1)
    assert decided(Guarding(pressure=Pressure.OVERFLOW, held=True)) == Compact("pre_request")


def test_what_still_does_not_fit_is_not_sent() -> None:
    assert decided(Guarding(pressure=Pressure.OVERFLOW, compactions=3)) == Refuse()


def test_what_can_never_fit_is_told_with_its_reason() -> None:
    assert decided(Guarding(pressure=Pressure.OVERFLOW, refused=WHY)) == Refuse(WHY)


def test_a_compaction_by_hand_is_waited_for() -> None:
    assert decided(Guarding(pressure=Pressure.NORMAL, running=True)) == AwaitCompaction()


def test_tools_run_before_anything_is_compacted() -> None:
    assert isinstance(decided(HIGH, round_open=True), RunTools)


def test_a_person_who_stops_is_obeyed_first() -> None:
    assert decided(HIGH, stop_requested=True) == Halt()


def test_the_guard_comes_before_remediation() -> None:
    assert isinstance(decided(HIGH, due=Due.CRITICAL, leaf=Leaf.TYPED), Compact)
    assert isinstance(decided(HIGH, due=Due.CLEAR, leaf=Leaf.RESULT), Compact)


def test_an_agent_that_is_reminded_first_is_compacted_only_where_the_request_does_not_fit() -> None:
    assert decided(HIGH, reminds=True, due=Due.CRITICAL, leaf=Leaf.TYPED) == CarryNotice()
    assert isinstance(decided(HIGH, reminds=True), Generate)
    assert isinstance(decided(Guarding(pressure=Pressure.OVERFLOW), reminds=True), Compact)


def test_where_compaction_came_to_nothing_remediation_comes() -> None:
    vain = replace(HIGH, vain=True)

    assert decided(vain, due=Due.CRITICAL, leaf=Leaf.TYPED) == CarryNotice()
    assert decided(vain, due=Due.CLEAR, leaf=Leaf.RESULT) == ClearMind()


def test_a_prompt_that_was_refused_is_compacted_where_somebody_guards() -> None:
    assert decided(Guarding(pressure=Pressure.NORMAL), overflowed=True) == Compact("overflow")


def test_a_refusal_waits_for_a_compaction_that_is_under_way() -> None:
    assert decided(Guarding(pressure=Pressure.NORMAL, running=True), overflowed=True) == AwaitCompaction()


def test_a_prompt_that_was_refused_begins_a_course_where_nobody_guards() -> None:
    assert decided(None, overflowed=True) == ClearMind(overflow=True)


def test_a_prompt_that_is_refused_although_it_was_compacted_begins_a_course() -> None:
    three = Guarding(pressure=Pressure.NORMAL, tried=True, compactions=3)

    assert decided(three, overflowed=True) == ClearMind(overflow=True)
    assert decided(replace(three, compactions=1, vain=True), overflowed=True) == ClearMind(overflow=True)


def test_a_prompt_that_is_refused_after_a_compaction_is_compacted_again_three_times() -> None:
    guard = Guarding(pressure=Pressure.NORMAL, tried=True, compactions=2)

    assert decided(guard, overflowed=True) == Compact("overflow")


def test_after_a_compaction_the_refused_prompt_is_asked_again() -> None:
    guard = Guarding(pressure=Pressure.NORMAL, tried=True, compactions=1, relieved=True)

    assert decided(guard, overflowed=True) == Generate(attempt=1)


FILLED = Guarding(pressure=Pressure.NORMAL)


def test_an_answer_that_filled_the_window_before_a_word_is_asked_for_again_with_more_room() -> None:
    assert decided(FILLED, filled=True) == Compact("stream")
    assert decided(replace(FILLED, relieved=True), filled=True) == Generate(attempt=1)


@pytest.mark.parametrize("more", [{"vain": True}, {"compactions": 3}])
def test_where_no_compaction_can_help_it_it_is_asked_for_as_it_is(more: dict[str, object]) -> None:
    assert decided(replace(FILLED, **more), filled=True) == Generate(attempt=1)


def test_who_undid_a_compaction_did_not_ask_for_half_an_answer() -> None:
    assert decided(replace(HIGH, held=True)) == Generate(attempt=1)
    assert decided(replace(HIGH, held=True), leaf=Leaf.INSERTED, continuing=True) == Compact("stream")
