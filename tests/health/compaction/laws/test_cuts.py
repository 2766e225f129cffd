"""A context in cuts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from health.compaction.laws.cuts import ceil_share, cuts, floor_share, ids_of
from health.compaction.terms.units import Role, Unit
from tests.health.compaction.builders import KIT, a_round, a_talk, a_unit, ids, pinned

R, B = a_round("look", "found", id="r"), a_round("two", "2", id="b")
(T0, T1), X = a_talk(2), a_unit("meanwhile", id="x")


@pytest.mark.parametrize(
    ("units", "found"),
    [
        ((), []),
        ((T0, *R, T1), [["t0"], ["r-a", "r-t0"], ["t1"]]),
        ((T0, R[0], X, R[1], T1), [["t0"], ["r-a", "x", "r-t0"], ["t1"]]),
        ((R[0], B[0], R[1], B[1], T0), [["r-a", "b-a", "r-t0", "b-t0"], ["t0"]]),
    ],
    ids=["nothing", "a round", "what stands inside of one", "rounds that cross"],
)
def test_a_round_is_one_cut_with_what_stands_inside_and_any_other_unit_is_one_of_its_own(
    units: tuple[Unit, ...], found: list[list[str]]
) -> None:
    made = cuts(units)

    assert [ids(cut.units) for cut in made] == found
    assert [ids(units)[cut.start] for cut in made] == [names[0] for names in found]


def test_a_round_with_one_protected_unit_is_protected_whole() -> None:
    asked, answered = a_round("look", "found", id="r")
    units = (*a_talk(2), asked, pinned(answered), *a_talk(3, start=2))

    assert [cut.protected for cut in cuts(units)] == [True, False, True, False, False, True]


def test_tokens_and_ids_of_cuts_are_those_of_all_their_units() -> None:
    found = cuts(KIT.counted((*a_round("look at it", "found it", id="r"), T1)))

    assert found[0].tokens == 5
    assert ids_of(found) == {"r-a", "r-t0", "t1"}


def test_shares_are_not_disturbed_by_binary_fractions() -> None:
    assert floor_share(100, 0.29) == 29
    assert ceil_share(100, 0.07) == 7


def test_ten_thousand_messages_inside_rounds_are_cut_in_one_pass() -> None:
    units = tuple(
        replace(unit, id=f"{unit.id}{number}", round_id=f"r{number}")
        for number in range(5_000)
        for unit in a_round("look", "found", id="x")
    )

    found = cuts((*units, a_unit("last", role=Role.USER)))

    assert len(found) == 5_001
