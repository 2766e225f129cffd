"""Coordinates of the chart of prompt tokens per generation. Pure: readings in, coordinates out.

SVG user units, y downwards. A generation without usage is a gap in the line and a mark on the axis.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from health.selectors import Point

WIDTH, HEIGHT = 320.0, 140.0
LEFT, RIGHT, TOP, BOTTOM = 40.0, 8.0, 10.0, 20.0
ChartPoint = tuple[float, float]
# The share of room above the highest line.
HEADROOM = 1.08


@dataclass(frozen=True)
class Dot:
    x: float
    y: float
    level: str
    number: int
    prompt_tokens: int | None


@dataclass(frozen=True)
class Tick:
    y: float
    label: str


@dataclass(frozen=True, kw_only=True)
class Chart:
    """`lines` are SVG point lists, one for each stretch without gaps; ceilings are lists of the same kind."""

    width: float = WIDTH
    height: float = HEIGHT
    left: float = LEFT
    right: float = WIDTH - RIGHT
    floor: float = HEIGHT - BOTTOM
    dots: tuple[Dot, ...] = ()
    gaps: tuple[Dot, ...] = ()
    lines: tuple[str, ...] = ()
    optimal: tuple[str, ...] = ()
    critical: tuple[str, ...] = ()
    ticks: tuple[Tick, ...] = ()
    first: int | None = None
    last: int | None = None

    @property
    def is_empty(self) -> bool:
        return not self.dots


def chart(history: Sequence[Point]) -> Chart:
    """The chart of these readings, oldest first. Empty if none of them has usage."""
    top = _top(history)
    if not top:
        return Chart(gaps=tuple(_dot(at, point, history, 1.0) for at, point in enumerate(history)))
    dots = [_dot(at, point, history, top) for at, point in enumerate(history)]
    return Chart(
        dots=tuple(dot for dot in dots if dot.prompt_tokens is not None),
        gaps=tuple(dot for dot in dots if dot.prompt_tokens is None),
        lines=_lines([None if dot.prompt_tokens is None else (dot.x, dot.y) for dot in dots]),
        optimal=_lines(_ceiling(history, [point.optimal_max_tokens for point in history], top)),
        critical=_lines(_ceiling(history, [point.critical_max_tokens for point in history], top)),
        ticks=tuple(Tick(_y(value, top), short(round(value))) for value in (0, top / HEADROOM / 2, top / HEADROOM)),
        first=history[0].number,
        last=history[-1].number,
    )


def short(tokens: int) -> str:
    """41234 -> "41.2k", 2048 -> "2,048"; for axes and the meter, where every digit would not fit."""
    if tokens < 10_000:
        return f"{tokens:,}"
    thousands = tokens / 1000
    return f"{thousands:.1f}".removesuffix(".0") + "k" if thousands < 100 else f"{thousands:.0f}k"


def _top(history: Sequence[Point]) -> float:
    """The top of the axis: the highest tokens, or the newest ceiling. One of before may have been a slip."""
    points = [point for point in history if point.prompt_tokens is not None]
    ceiling = next((point.critical_max_tokens for point in reversed(points) if point.critical_max_tokens), 0)
    return max(ceiling, *(point.prompt_tokens or 0 for point in points)) * HEADROOM if points else 0.0


def _x(at: int, history: Sequence[Point]) -> float:
    steps = max(1, len(history) - 1)
    return round(LEFT + (WIDTH - LEFT - RIGHT) * at / steps, 1)


def _y(tokens: float, top: float) -> float:
    return round(HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * tokens / top, 1)


def _dot(at: int, point: Point, history: Sequence[Point], top: float) -> Dot:
    y = HEIGHT - BOTTOM if point.prompt_tokens is None else _y(point.prompt_tokens, top)
    return Dot(_x(at, history), y, point.level, point.number, point.prompt_tokens)


def _ceiling(history: Sequence[Point], ceilings: Sequence[int | None], top: float) -> list[ChartPoint | None]:
    """A ceiling's line. It holds until the next reading's, so it crosses gaps; None if it is above the chart."""
    known = [ceiling for ceiling in ceilings if ceiling is not None]
    held, places = known[0] if known else None, list[ChartPoint | None]()
    for at, ceiling in enumerate(ceilings):
        held = ceiling or held
        places.append(None if held is None or held > top else (_x(at, history), _y(held, top)))
    if len(places) == 1 and places[0] is not None:
        places.append((WIDTH - RIGHT, places[0][1]))
    return places


def _lines(points: Iterable[ChartPoint | None]) -> tuple[str, ...]:
    """SVG point lists of the stretches between the gaps."""
    stretches: list[list[str]] = [[]]
    for point in points:
        if point is None:
            stretches.append([])
        else:
            stretches[-1].append(f"{point[0]},{point[1]}")
    return tuple(" ".join(stretch) for stretch in stretches if stretch)
