"""A context in cuts."""

from __future__ import annotations

from dataclasses import replace

from health.compaction.laws.cuts import ceil_share, cuts, floor_share, ids_of
from health.compaction.terms.units import Role
from tests.health.compaction.builders import KIT, a_round, a_talk, a_unit, ids, pinned


def test_a_unit_without_a_round_is_a_cut_of_its_own() -> None:
    assert [ids(cut.units) for cut in cuts(a_talk(3))] == [["t0"], ["t1"], ["t2"]]


def test_a_round_is_one_cut() -> None:
    units = (*a_talk(1), *a_round("look", "one", "two", id="r"), *a_talk(1, start=1))

    assert [ids(cut.units) for cut in cuts(units)] == [["t0"], ["r-a", "r-t0", "r-t1"], ["t1"]]


def test_what_stands_inside_a_round_goes_with_it() -> None:
    asked, answered = a_round("look", "found", id="r")
    units = (*a_talk(1), asked, a_unit("meanwhile", id="x"), answered, *a_talk(1, start=1))

    assert [ids(cut.units) for cut in cuts(units)] == [["t0"], ["r-a", "x", "r-t0"], ["t1"]]


def test_rounds_that_cross_are_one_cut() -> None:
    (a, ra), (b, rb) = a_round("one", "1", id="a"), a_round("two", "2", id="b")

    assert [ids(cut.units) for cut in cuts((a, b, ra, rb, *a_talk(1)))] == [["a-a", "b-a", "a-t0", "b-t0"], ["t0"]]


def test_a_round_with_one_protected_unit_is_protected_whole() -> None:
    asked, answered = a_round("look", "found", id="r")
    units = (*a_talk(2), asked, pinned(answered), *a_talk(3, start=2))

    assert [cut.protected for cut in cuts(units)] == [True, False, True, False, False, True]


def test_a_cut_knows_where_it_starts() -> None:
    assert [cut.start for cut in cuts((*a_round("look", "found"), *a_talk(2)))] == [0, 2, 3]


def test_a_cut_counts_its_tokens() -> None:
    units = KIT.counted((*a_round("look at it", "found it"), *a_talk(1)))

    assert cuts(units)[0].tokens == 5


def test_an_empty_context_has_no_cuts() -> None:
    assert cuts(()) == []


def test_ids_of_cuts_are_those_of_all_their_units() -> None:
    assert ids_of(cuts(a_round("look", "found", id="r"))) == {"r-a", "r-t0"}


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
