"""Looking for garbage is put off, and taken up again whatever happens."""

from __future__ import annotations

import gc

import pytest

from health.services import no_collection


def test_nothing_is_looked_for_inside_and_again_afterwards() -> None:
    with no_collection():
        inside = gc.isenabled()

    assert (inside, gc.isenabled()) == (False, True)


def test_an_error_inside_does_not_leave_it_off() -> None:
    with pytest.raises(ValueError, match="inside"), no_collection():
        raise ValueError("inside")

    assert gc.isenabled()


def test_the_outer_one_takes_it_up_again() -> None:
    with no_collection():
        with no_collection():
            pass
        between = gc.isenabled()

    assert (between, gc.isenabled()) == (False, True)
