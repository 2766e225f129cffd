from __future__ import annotations

import pytest

from dominds.supervisor.restarts import GiveUp, Restart, after_death


@pytest.mark.parametrize(
    ("deaths", "expected"),
    [
        ((100.0,), Restart(delay=0.5)),
        ((99.0, 100.0), Restart(delay=1.0)),
        ((98.0, 99.0, 100.0), Restart(delay=2.0)),
        ((97.0, 98.0, 99.0, 100.0), Restart(delay=4.0)),
        # The fifth within a minute is the last.
        ((96.0, 97.0, 98.0, 99.0, 100.0), GiveUp(deaths=5)),
        # What lies a minute back is forgiven.
        ((1.0, 2.0, 3.0, 4.0, 100.0), Restart(delay=0.5)),
        ((40.0, 100.0), Restart(delay=0.5)),
    ],
)
def test_each_death_within_a_minute_doubles_the_wait(deaths: tuple[float, ...], expected: Restart | GiveUp) -> None:
    assert after_death(deaths, now=100.0) == expected
