"""The sliding window: 24 messages, the newest ten always, older ones by importance, rounds whole, in order."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from health.compaction.config import ContextConfig, SlidingWindow
from health.compaction.strategies.sliding_window import sliding_window
from health.compaction.terms.ports import Attempt
from health.compaction.terms.units import Kind, Role, Unit
from tests.health.compaction.builders import (
    a_round,
    a_state,
    a_talk,
    a_unit,
    broken_laws,
    ids,
    p1,
    placeholders_in,
    play,
)


def messages(attempt: Attempt) -> list[str]:
    """The ids of what is left of the conversation itself."""
    return [u.id for u in attempt.state.units if u.kind is not Kind.PLACEHOLDER and u.role is not Role.SYSTEM]


def slid(*units: Unit, **window: int | float) -> Attempt:
    in_order = (replace(unit, timestamp=float(at)) for at, unit in enumerate(units))
    state = a_state(*in_order, config=ContextConfig(sliding_window=SlidingWindow(**window)))
    attempt = play(sliding_window, state)
    assert broken_laws(state, attempt) == []
    return attempt


def replaced(units: tuple[Unit, ...], at: int, **fields: object) -> tuple[Unit, ...]:
    return (*units[:at], replace(units[at], **fields), *units[at + 1 :])


@pytest.mark.parametrize("before", [(), (a_unit("You are kind.", id="sys", role=Role.SYSTEM),)])
def test_twenty_four_messages_are_not_touched_and_the_system_prompt_is_not_counted(before: tuple[Unit, ...]) -> None:
    attempt = slid(*before, *a_talk(24))

    assert (attempt.changed, attempt.note) == (False, "not more than 24 messages")


@pytest.mark.parametrize(("window", "newest"), [(24, 10), (12, 5), (16, 7), (30, 12), (40, 16)])
def test_the_newest_are_always_there_and_the_window_and_its_share_are_set_in_one_place(
    window: int, newest: int
) -> None:
    """24 and ten unless told otherwise."""
    talk = tuple(replace(u, content=f"error {u.content}") if at < 50 else u for at, u in enumerate(a_talk(70)))

    left = messages(slid(*talk, **({} if window == 24 else {"max_messages": window})))

    assert len(left) == window
    assert left[-newest:] == [f"t{i}" for i in range(70 - newest, 70)]


@pytest.mark.parametrize(
    "said",
    [
        "ERROR: the disk is full, really full, completely",
        "The migration is done and all went as it should",
        "Plan: first the cellar, then the kitchen, then the roof",
    ],
)
def test_an_old_error_completion_or_plan_survives(said: str) -> None:
    assert "t7" in messages(slid(*replaced(a_talk(60), 7, content=said)))


def test_of_two_alike_the_newer_stays_and_one_placeholder_tells_how_many_are_gone() -> None:
    attempt = slid(*a_talk(30))

    # the first request is protected; of the others the oldest six go
    assert messages(attempt) == ["t0", *(f"t{i}" for i in range(7, 30))]
    assert [unit.content for unit in placeholders_in(attempt.state)] == ["[Omitted earlier context]\n6 messages"]


@pytest.mark.parametrize(("begins", "stays"), [(10, False), (30, True)])
def test_a_round_stays_or_goes_whole_and_one_that_reaches_into_the_newest_stays(begins: int, stays: bool) -> None:
    talk = a_talk(39)
    tools = a_round("looking", "one", "two", "three", id="r")

    left = messages(slid(*talk[:begins], *tools, *talk[begins:]))

    assert [name for name in left if name.startswith("r-")] == (ids(tools) if stays else [])


@pytest.mark.parametrize(("result", "failed"), [("Traceback (most recent call last):", False), ("nothing here", True)])
def test_a_round_with_an_error_or_a_result_that_failed_is_as_important_as_the_error(result: str, failed: bool) -> None:
    talk = a_talk(60)
    asked, *results = a_round("looking", result, "fine", id="r")

    left = messages(
        slid(*talk[:10], asked, *(replace(one, failed=True) if failed else one for one in results), *talk[10:])
    )

    assert {"r-a", "r-t0", "r-t1"} <= set(left)


def test_a_round_too_large_for_the_room_leaves_it_to_others() -> None:
    talk = a_talk(40)
    tools = a_round("error", *("error in many words" for _ in range(20)), id="r")

    left = messages(slid(*talk[:10], *tools, *talk[10:]))

    assert "r-a" not in left
    assert len(left) == 24


def test_more_protected_messages_than_the_window_holds_all_stay() -> None:
    talk = tuple(p1(unit) for unit in a_talk(30))

    left = messages(slid(*talk, *a_talk(40, start=30)))

    assert left == [f"t{i}" for i in range(30)] + [f"t{i}" for i in range(60, 70)]


def test_a_summary_stays_and_is_not_counted() -> None:
    summary = a_unit("[Summary of 9 earlier messages: history, not instructions]", id="s", kind=Kind.SUMMARY)
    talk = a_talk(30)

    left = messages(slid(talk[0], summary, *talk[1:]))

    assert "s" in left
    assert len(left) == 25


def test_prompts_of_the_driver_go_first_and_the_newest_stays() -> None:
    talk = a_talk(20)
    prompts = [
        a_unit("Context health is critical. Please clear your mind now.", id=f"p{i}", inserted=True) for i in range(5)
    ]
    mixed = [unit for at, unit in enumerate(talk) for unit in ((unit, prompts[at // 4]) if at % 4 == 3 else (unit,))]

    left = messages(slid(*mixed))

    assert [name for name in left if name.startswith("p")] == ["p4"]
    assert [name for name in left if name.startswith("t")] == ids(talk)


def test_an_old_prompt_does_not_take_a_place_among_the_newest() -> None:
    talk = a_talk(60)
    prompts = [a_unit("Please clear your mind.", id=f"p{i}", inserted=True) for i in range(5)]

    left = messages(slid(*talk[:55], *prompts, *talk[55:]))

    assert left[-11:] == [*(f"t{i}" for i in range(50, 55)), "p4", *(f"t{i}" for i in range(55, 60))]


def test_a_soak_of_two_hundred_messages_stays_within_the_window_behind_one_placeholder() -> None:
    state = a_state(*a_talk(1))
    for at in range(1, 200):
        state = play(sliding_window, a_state(*state.units, *a_talk(1, start=at))).state

    assert len([unit for unit in state.units if unit.kind is not Kind.PLACEHOLDER]) == 24
    assert [unit.content for unit in placeholders_in(state)] == ["[Omitted earlier context]\n176 messages"]


@pytest.mark.long
def test_the_cost_of_a_message_is_flat() -> None:
    def seconds(count: int) -> float:
        state = a_state(*a_talk(count, words=4))
        begun = time.process_time()
        play(sliding_window, state)
        return (time.process_time() - begun) / count

    assert seconds(8000) < 4 * seconds(500)
