"""What must stay, how small it can be made, and who is to blame where that is too much. A word is a token."""

from __future__ import annotations

from dataclasses import replace

import pytest

from health.compaction.config import ContextConfig, RecoveryMode
from health.compaction.laws.floor import (
    LEAST_ROOM,
    OPENING,
    Contributor,
    Floor,
    can_give_way,
    diagnosis,
    floor_of,
    irreducible,
    is_handover,
    least_of,
    must_stay,
    oversized,
    shares,
    standing,
    ways,
)
from health.compaction.laws.weave import without_ledger, woven
from health.compaction.reading.ledger import extract
from health.compaction.terms.reasons import Reason, Why
from health.compaction.terms.units import Kind, Role, Unit, total
from tests.health.compaction.builders import KIT, a_round, a_state, a_talk, a_unit, ids, p1, pinned

SYSTEM = a_unit("be brief", id="system", role=Role.SYSTEM)
FIRST = a_unit("build me a boat", id="first")
ANSWER = a_unit("with pleasure", id="answer", role=Role.ASSISTANT)
LAST = a_unit("now paint it", id="last")
OLD = a_round("looking", "oak", id="old")
OPEN = a_round("mixing", "a " * 90, "red", id="open")
HANDOVER = a_unit(f"{OPENING}we built a boat", id="handover", role=Role.ASSISTANT, kind=Kind.SUMMARY)


def by_unit(floor: Floor) -> dict[str, tuple[Why, int]]:
    return {share.unit_id: (share.why, share.tokens) for share in floor.shares}


@pytest.mark.parametrize(
    ("units", "names"),
    [
        ((FIRST, ANSWER, OLD[0], pinned(OLD[1]), ANSWER, LAST), ["first", "old-a", "old-t0", "last"]),
        # A handover can be retold.
        ((pinned(HANDOVER), FIRST), ["first"]),
        # Where nothing is protected the last cut stands.
        ((ANSWER, *OLD, HANDOVER), ["handover"]),
        ((), []),
    ],
)
def test_the_cuts_with_something_protected_stand_whole(units: tuple[Unit, ...], names: list[str]) -> None:
    assert ids(standing(units)) == names


@pytest.mark.parametrize(
    ("unit", "is_one"),
    [(HANDOVER, True), (replace(HANDOVER, kind=Kind.PLACEHOLDER), False), (HANDOVER.saying("We built."), False)],
)
def test_a_handover_is_a_summary_that_opens_as_one(unit: Unit, is_one: bool) -> None:
    assert is_handover(unit) is is_one


def test_what_is_not_protected_can_give_way_and_so_can_open_results_that_nobody_marked() -> None:
    asked, long, short = OPEN
    units = (SYSTEM, FIRST, ANSWER, LAST, asked, long, short)

    assert can_give_way(units) == {"answer", "open-t0", "open-t1"}
    assert can_give_way((*units[:-2], p1(long), pinned(short))) == {"answer"}


@pytest.mark.parametrize(("limit", "room"), [(99, None), (98, 89), (10, 1), (8, 0)])
def test_a_result_is_oversized_that_does_not_fit_beside_what_must_stay(limit: int, room: int | None) -> None:
    """Beside it stand 4 + 3 + 1 words; of one that fits alone, nothing is said."""
    asked, long, _ = OPEN
    asked = replace(asked, calls=asked.calls[:1])
    state = a_state(FIRST, LAST, asked, long, limit=limit, overhead_tokens=1)

    found = oversized(state)

    expected = None if room is None else Reason(Why.RESULT_TOO_LARGE, {"tokens": 90, "room": room})
    assert found.get("open-t0") == expected


def test_marked_results_are_never_oversized() -> None:
    asked, long, short = OPEN

    assert oversized(a_state(FIRST, asked, pinned(long), short, limit=95)) == {
        "open-t1": Reason(Why.RESULT_TOO_LARGE, {"tokens": 1, "room": 0})
    }


def test_what_must_stay_is_counted_with_the_ledger_of_what_leaves() -> None:
    rule = a_unit("You must never deploy on Fridays.", id="rule")
    state = a_state(FIRST, rule, *a_talk(4), limit=1000, overhead_tokens=7)
    kit = replace(KIT, entries=extract(state.units))
    kept = standing(state.units)

    carried = woven(state, kept, kit)

    assert must_stay(state, kit) == 7 + total(carried) > 7 + total(kept)


def test_an_earlier_ledger_is_counted_once() -> None:
    rule = a_unit("You must never deploy on Fridays.", id="rule")
    state = a_state(FIRST, rule, *a_talk(4), limit=1000, overhead_tokens=7)
    kit = replace(KIT, entries=extract(state.units))
    again = state.with_units(woven(state, [unit for unit in state.units if unit.id != "rule"], kit))

    assert must_stay(again, kit) == must_stay(without_ledger(again), kit) == must_stay(state, kit)


def test_of_a_message_that_is_worked_on_a_little_must_be_left() -> None:
    long = a_unit("word " * 200, id="last", image_tokens=5)
    state = a_state(SYSTEM, FIRST, long, ANSWER, overhead_tokens=9, answer_tokens=4)

    floor = least_of(state)

    assert [(share.unit_id, share.why, share.tokens) for share in floor.shares] == [  # the largest first
        ("last", Why.USERS_WORDS, LEAST_ROOM + 5),
        ("", Why.OVERHEAD, 5),  # without what is kept for the answer
        ("system", Why.SYSTEM_PROMPT, 2),
    ]
    assert floor.tokens == 9 + 2 + LEAST_ROOM + 5
    # Where nothing stands there is room to say so.
    assert (least_of(a_state(ANSWER)).tokens, least_of(a_state()).tokens) == (LEAST_ROOM, 0)


def test_of_a_message_that_waits_or_is_marked_nothing_may_be_left_out() -> None:
    long = a_unit("word " * 200, id="last")

    waiting, marked = least_of(a_state(FIRST, long)), least_of(a_state(FIRST, pinned(long), ANSWER))

    assert by_unit(waiting)["last"] == (Why.USERS_WORDS, 200)
    assert by_unit(marked)["last"] == (Why.PINNED, 200)


def test_an_earlier_ledger_is_no_part_of_the_least() -> None:
    rule = a_unit("You must never deploy on Fridays.", id="rule")
    state = a_state(FIRST, rule, LAST, limit=1000, overhead_tokens=7)
    kit = replace(KIT, entries=extract(state.units))
    carried = state.with_units(woven(state, [FIRST, LAST], kit))

    assert irreducible(carried, kit).tokens == 7 + 3


def test_where_no_recovery_is_wished_for_all_that_is_protected_must_stay() -> None:
    strict = ContextConfig(recovery_mode=RecoveryMode.ERROR)

    assert irreducible(a_state(FIRST, ANSWER, LAST), KIT).tokens == 3
    assert irreducible(a_state(FIRST, ANSWER, LAST, config=strict), KIT).tokens == 7


def test_the_floor_names_why_each_of_its_parts_must_stay() -> None:
    held = (OLD[0], pinned(OLD[1]))
    state = a_state(SYSTEM, FIRST, p1(ANSWER), *held, LAST, *OPEN, overhead_tokens=9, answer_tokens=4)

    floor = floor_of(state, KIT, is_whole=True)

    assert by_unit(floor) == {
        "": (Why.OVERHEAD, 5),
        "system": (Why.SYSTEM_PROMPT, 2),
        "first": (Why.USERS_WORDS, 4),
        "answer": (Why.P1, 2),
        "old-a": (Why.HELD_ROUND, 1),
        "old-t0": (Why.PINNED, 1),
        "last": (Why.USERS_WORDS, 3),
        "open-a": (Why.OPEN_ROUND, 1),
        "open-t0": (Why.OPEN_ROUND, 90),
        "open-t1": (Why.OPEN_ROUND, 1),
    }
    assert floor.tokens == 9 + 105
    assert floor.shares[0].unit_id == "open-t0"
    assert [share.unit_id for share in floor.shares if not share.helped] == ["open-a"]  # nobody can ask it for less


def test_results_of_the_open_round_give_way_as_a_last_resort() -> None:
    state = a_state(FIRST, *a_round("mixing", "a " * 400, id="open"))

    least, whole = floor_of(state, KIT), floor_of(state, KIT, is_whole=True)

    assert whole.tokens == 405
    assert least.tokens == 5 + by_unit(least)["open-t0"][1] < 200


FLOOR = Floor(
    tokens=1000,
    shares=(
        Contributor(why=Why.PINNED, tokens=500, unit_id="a"),
        Contributor(why=Why.PINNED, tokens=479, unit_id="b"),
        Contributor(why=Why.OVERHEAD, tokens=21),
    ),
)


def test_the_largest_three_are_named_that_are_more_than_a_fiftieth_and_each_way_that_helps_once() -> None:
    small = replace(FLOOR, shares=(*FLOOR.shares[:2], replace(FLOOR.shares[2], tokens=20)))
    four = replace(FLOOR, shares=(FLOOR.shares[0], *FLOOR.shares))
    helpless = replace(FLOOR, shares=tuple(replace(share, helped=False) for share in FLOOR.shares))

    assert [str(share) for share in shares(FLOOR)] == [
        "pinned (a) ≈500 tokens",
        "pinned (b) ≈479 tokens",
        "tool schemas and other overhead ≈21 tokens",
    ]
    assert (len(shares(small)), len(shares(four))) == (2, 3)
    assert ([way.why for way in ways(FLOOR)], ways(helpless)) == ([Why.UNPIN, Why.FEWER_TOOLS], ())
    assert diagnosis(FLOOR, limit=500, named=600).args["limit"] == 600


def test_many_that_are_small_are_named_together() -> None:
    pins = tuple(Contributor(why=Why.PINNED, tokens=15, unit_id=str(number)) for number in range(60))
    crowd = replace(FLOOR, shares=(Contributor(why=Why.OVERHEAD, tokens=100), *pins))

    assert [str(share) for share in shares(crowd)] == [
        "pinned ≈900 tokens",
        "tool schemas and other overhead ≈100 tokens",
    ]
    assert [way.why for way in ways(crowd)] == [Why.UNPIN, Why.FEWER_TOOLS]


@pytest.mark.parametrize(
    ("limit", "why", "needed"),
    [(510, Why.CANNOT_FREE_MORE, 1000), (509, Why.P1_ALONE, 510)],  # what is first in importance fits by itself, or not
)
def test_a_diagnosis_says_whether_the_most_important_is_too_much_by_itself(limit: int, why: Why, needed: int) -> None:
    floor = replace(FLOOR, shares=(replace(FLOOR.shares[0], why=Why.P1, tokens=510), *FLOOR.shares[1:]))

    found = diagnosis(floor, limit=limit)

    assert (found.why, found.args["needed"], found.args["limit"]) == (why, needed, limit)
    assert (found.args["shares"], found.args["ways"]) == (shares(floor), ways(floor))
