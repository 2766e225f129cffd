"""The chart of prompt tokens: what is drawn, where, and what an unknown number leaves out."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from dialogs.context.chart import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Chart, chart, short
from health.selectors import Point


def a_point(prompt_tokens: int | None, **fields: Any) -> Point:
    values: dict[str, Any] = {
        "number": 1,
        "generation_id": 1,
        "level": "unknown" if prompt_tokens is None else "healthy",
        "prompt_tokens": prompt_tokens,
        "context_window": None if prompt_tokens is None else 1000,
        "optimal_max_tokens": None if prompt_tokens is None else 500,
        "critical_max_tokens": None if prompt_tokens is None else 900,
        "read_at": timezone.now(),
    }
    return Point(**(values | fields))


def drawn(*prompt_tokens: int | None, **fields: Any) -> Chart:
    """The chart of generations 1, 2, 3... with these prompt tokens; None where there was no usage."""
    return chart([a_point(tokens, number=at + 1, **fields) for at, tokens in enumerate(prompt_tokens)])


def places(line: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (place.split(",") for place in line.split())]


def heights(lines: tuple[str, ...]) -> set[float]:
    return {y for line in lines for _x, y in places(line)}


def test_no_generation_gives_no_chart() -> None:
    assert drawn().is_empty


@pytest.mark.parametrize("count", [1, 3])
def test_generations_without_usage_give_no_chart(count: int) -> None:
    found = drawn(*[None] * count)

    assert found.is_empty
    assert len(found.gaps) == count
    assert not found.lines + found.optimal + found.critical
    assert found.ticks == ()


def test_one_generation_is_one_dot_between_the_edges_and_ceilings_cross_the_chart() -> None:
    found = drawn(250)

    assert [(dot.number, dot.prompt_tokens, dot.level) for dot in found.dots] == [(1, 250, "healthy")]
    assert (found.first, found.last) == (1, 1)
    for line in (*found.optimal, *found.critical):
        assert [x for x, _y in places(line)] == [LEFT, WIDTH - RIGHT]


def test_time_runs_to_the_right_and_tokens_upwards_in_equal_steps() -> None:
    found = drawn(100, 200, 300)

    xs, ys = [dot.x for dot in found.dots], [dot.y for dot in found.dots]
    assert xs == sorted(xs)
    assert (xs[0], xs[-1]) == (LEFT, WIDTH - RIGHT)
    assert ys == sorted(ys, reverse=True)
    assert ys[0] - ys[1] == pytest.approx(ys[1] - ys[2], abs=0.2)


def test_a_generation_without_usage_breaks_the_line_and_is_marked_on_the_axis_where_it_happened() -> None:
    found = drawn(100, 200, None, 300, 400)

    assert [len(places(line)) for line in found.lines] == [2, 2]
    assert [dot.number for dot in found.dots] == [1, 2, 4, 5]
    (gap,) = found.gaps
    assert (gap.number, gap.prompt_tokens, gap.level, gap.y) == (3, None, "unknown", found.floor)
    assert found.dots[1].x < gap.x < found.dots[2].x


@pytest.mark.parametrize("tokens", [(None, 100, None), (100, None, None), (None, None, 100)])
def test_a_single_measured_generation_among_gaps_is_still_a_dot(tokens: tuple[int | None, ...]) -> None:
    found = drawn(*tokens)

    assert len(found.dots) == 1
    assert len(found.gaps) == 2
    assert (found.first, found.last) == (1, 3)


def test_a_ceiling_holds_across_a_gap() -> None:
    (optimal,) = drawn(None, 100, None, 300, None).optimal

    assert len(places(optimal)) == 5
    assert len(heights((optimal,))) == 1


def test_zero_tokens_are_drawn_on_the_floor_are_no_gap_and_are_not_divided_by() -> None:
    found = drawn(0, 10)

    assert found.dots[0].y == found.floor
    assert found.gaps == ()
    assert drawn(0, 0, optimal_max_tokens=None, critical_max_tokens=None).lines == ()


def test_readings_over_a_ceiling_stand_above_its_line() -> None:
    found = drawn(400, 600, 950)

    (optimal,) = heights(found.optimal)
    (critical,) = heights(found.critical)
    low, middle, high = (dot.y for dot in found.dots)
    # y grows downwards.
    assert high < critical < middle < optimal < low


def test_a_changed_ceiling_moves_its_line_and_one_that_is_unknown_or_far_above_all_is_left_out() -> None:
    moved = chart([a_point(100, optimal_max_tokens=500), a_point(120, optimal_max_tokens=300)])
    far = drawn(100, 200, optimal_max_tokens=100_000)
    unknown = drawn(100, 200, context_window=None, optimal_max_tokens=None, critical_max_tokens=None, level="unknown")

    assert len(heights(moved.optimal)) == 2
    assert (far.optimal, bool(far.critical)) == ((), True)
    assert (len(unknown.dots), unknown.optimal + unknown.critical) == (2, ())


def test_a_window_that_was_mistyped_once_does_not_flatten_the_chart() -> None:
    slip = a_point(100, critical_max_tokens=9_000_000, optimal_max_tokens=8_000_000)

    found = chart([slip, a_point(200, critical_max_tokens=900, optimal_max_tokens=500)])

    assert found.ticks[-1].label == "900"


def test_the_axis_is_labelled_from_zero_upwards() -> None:
    labels = [(tick.label, tick.y) for tick in drawn(100, 200).ticks]

    assert [label for label, _y in labels] == ["0", "450", "900"]
    assert labels[0][1] == HEIGHT - BOTTOM
    assert [y for _label, y in labels] == sorted((y for _label, y in labels), reverse=True)


@pytest.mark.parametrize("count", [2, 3, 200])
def test_everything_stays_inside_the_drawing(count: int) -> None:
    found = drawn(*(at * 37 % 1100 if at % 7 else None for at in range(count)))

    drawn_places = [place for line in (*found.lines, *found.optimal, *found.critical) for place in places(line)]
    drawn_places += [(dot.x, dot.y) for dot in (*found.dots, *found.gaps)]
    assert all(LEFT <= x <= WIDTH - RIGHT and TOP <= y <= found.floor for x, y in drawn_places)


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (0, "0"),
        (999, "999"),
        (2048, "2,048"),
        (9_999, "9,999"),
        (10_000, "10k"),
        (41_234, "41.2k"),
        (99_999, "100k"),
        (128_000, "128k"),
        (1_000_000, "1000k"),
    ],
)
def test_counts_are_short_on_the_axis(tokens: int, text: str) -> None:
    assert short(tokens) == text
