"""Hundreds of turns with tools and pictures at a server that cuts without a word; `benchmarks.soak` has a thousand."""

from __future__ import annotations

import pytest

from tests.overflow.conftest import Build
from tests.overflow.soak import PROMISED, soak, way
from tests.overflow.talk import SYSTEM, missing

TURNS = 200
# A late turn computes at most so many times as long as a first one: what the client resends is parsed.
FLAT = 1.8


@pytest.mark.long
@pytest.mark.parametrize("listed", [True, False], ids=["listed", "not listed"])
def test_hundreds_of_turns_are_read_whole_and_take_no_longer(build: Build, listed: bool) -> None:
    home = build(**way(listed=listed))

    soaked = soak(home, TURNS)

    assert soaked.failed == {}
    assert (home.standin.invalid, home.standin.refusals) == ([], [])
    assert soaked.cuts == [] if listed else (soaked.confirmed_at is not None and soaked.late_cuts == [])
    assert missing(home.last, (SYSTEM, *PROMISED)) == []
    assert soaked.median_ms(TURNS - 49, TURNS)[1] <= FLAT * soaked.median_ms(1, 50)[1]
    assert home.dialogs() == 1
