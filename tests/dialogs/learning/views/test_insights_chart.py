"""The chart of the Insights page: what is drawn, and where. Measured and estimated never share a line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from dialogs.learning.reads.insights.series import Point, Series
from dialogs.learning.views.insights_chart import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, picture

START = datetime(2026, 11, 20, tzinfo=UTC)
FLOOR = HEIGHT - BOTTOM


def at(hours: float, *values: int) -> Point:
    return Point(at=START + timedelta(hours=hours), count=1, values=values)


def a_series(*tokens: Point, limits: tuple[Point, ...] = (), marks: tuple[Point, ...] = ()) -> Series:
    return Series(start=START, end=START + timedelta(hours=10), tokens=tokens, limits=limits, marks=marks)


def places(line: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (place.split(",") for place in line.split())]


def test_nothing_gives_no_picture() -> None:
    assert picture(a_series(limits=(at(10, 5000),))).is_empty


def test_time_goes_to_the_right_and_tokens_upwards() -> None:
    drawn = picture(a_series(at(0, 100), at(5, 400), at(10, 200)))

    (x1, y1), (x2, y2), (x3, y3) = places(drawn.line)
    assert (x1, x3) == (LEFT, WIDTH - RIGHT)
    assert x2 == round((x1 + x3) / 2, 1)
    assert TOP <= y2 < y3 < y1 < FLOOR


def test_a_compaction_is_a_mark_of_its_own_beside_the_measured_line() -> None:
    drawn = picture(a_series(at(1, 3000), marks=(at(2, 4500, 2000),)))

    (mark,) = drawn.marks
    assert len(places(drawn.line)) == 1
    assert mark.y < places(drawn.line)[0][1] < mark.left


def test_a_limit_is_drawn_as_steps_to_the_last_that_is_known() -> None:
    drawn = picture(a_series(at(1, 3000), limits=(at(2, 4000), at(6, 5000), at(10, 5000))))

    held = places(drawn.limit)
    assert held[0][0] == LEFT
    assert held[-1][0] == WIDTH - RIGHT
    assert all(x1 == x2 or y1 == y2 for (x1, y1), (x2, y2) in pairwise(held))
    assert len({y for _x, y in held}) == 2


def test_a_limit_far_above_is_told_instead_of_drawn() -> None:
    drawn = picture(a_series(at(1, 300), limits=(at(10, 131_072),)))

    assert (drawn.limit, drawn.limit_above) == ("", 131_072)


def test_only_a_limit_that_lies_far_above_now_is_told_to_do_so() -> None:
    drawn = picture(a_series(at(1, 3000), limits=(at(2, 131_072), at(10, 4000))))

    held = places(drawn.limit)
    assert drawn.limit_above is None
    assert (held[0][1], TOP < held[-1][1] < FLOOR) == (TOP, True)


def test_what_the_limit_was_is_drawn_also_where_it_lies_far_above_now() -> None:
    drawn = picture(a_series(at(1, 3000), limits=(at(2, 4000), at(10, 131_072))))

    held = places(drawn.limit)
    assert drawn.limit_above == 131_072
    assert held[0][1] > held[-1][1] == TOP


def test_axes_begin_at_nothing() -> None:
    drawn = picture(a_series(at(1, 3000)))

    assert (drawn.ticks[0].y, drawn.ticks[0].label) == (FLOOR, "0")
    assert drawn.ticks[-1].label == "3,000"
