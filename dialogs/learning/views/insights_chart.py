"""Where everything stands in the chart of the Insights page. Pure: a series in, coordinates out.

SVG user units, y downwards, time to the right. What was measured is one line; what is estimated stands beside it, never
in it: a compaction is a mark of its own from what was there before to what was left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from dialogs.context.views.chart import HEADROOM, Tick, short
from dialogs.learning.reads.insights.series import Point, Series

WIDTH, HEIGHT = 640.0, 220.0
LEFT, RIGHT, TOP, BOTTOM = 56.0, 10.0, 12.0, 26.0
# A limit that lies further above all else would press that to the floor: it is drawn along the top. If it is the one
# that holds now, words tell how high it is.
FARTHEST_LIMIT = 4


@dataclass(frozen=True)
class Dot:
    x: float
    y: float
    point: Point


@dataclass(frozen=True)
class Mark:
    """A compaction, or several: from `y` down to `left`."""

    x: float
    y: float
    left: float
    point: Point

    @property
    def tip(self) -> str:
        """A triangle that points at what was left."""
        return f"{self.x - 4:.1f},{self.left - 7:.1f} {self.x + 4:.1f},{self.left - 7:.1f} {self.x},{self.left}"


@dataclass(frozen=True, kw_only=True)
class Picture:
    """`limit` is an SVG point list, empty where all of it lies too far above; `limit_above` is a last one that does."""

    width: float = WIDTH
    height: float = HEIGHT
    left: float = LEFT
    right: float = WIDTH - RIGHT
    line: str = ""
    dots: tuple[Dot, ...] = ()
    marks: tuple[Mark, ...] = ()
    limit: str = ""
    limit_above: int | None = None
    ticks: tuple[Tick, ...] = ()
    start: datetime
    end: datetime

    @property
    def is_empty(self) -> bool:
        return not self.dots and not self.marks


@dataclass(frozen=True)
class _Scale:
    start: datetime
    end: datetime
    top: float

    def x(self, at: datetime) -> float:
        span = (self.end - self.start).total_seconds() or 1.0
        share = min(1.0, max(0.0, (at - self.start).total_seconds() / span))
        return round(LEFT + (WIDTH - LEFT - RIGHT) * share, 1)

    def y(self, tokens: float) -> float:
        return round(HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * min(tokens / self.top, 1.0), 1)


def picture(series: Series) -> Picture:
    highest = max((point.values[0] for point in (*series.tokens, *series.marks)), default=0)
    if not highest:
        return Picture(start=series.start, end=series.end)
    limits = [point.values[0] for point in series.limits]
    near = [limit for limit in limits if limit <= FARTHEST_LIMIT * highest]
    scale = _Scale(series.start, series.end, HEADROOM * max([highest, *near]))
    dots = tuple(Dot(scale.x(point.at), scale.y(point.values[0]), point) for point in series.tokens)
    return Picture(
        line=" ".join(f"{dot.x},{dot.y}" for dot in dots),
        dots=dots,
        marks=tuple(_mark(point, scale) for point in series.marks),
        limit=" ".join(_stepped(series.limits, scale)) if near else "",
        limit_above=limits[-1] if limits and limits[-1] not in near else None,
        ticks=tuple(
            Tick(scale.y(share), short(round(share))) for share in (0, scale.top / HEADROOM / 2, scale.top / HEADROOM)
        ),
        start=series.start,
        end=series.end,
    )


def _mark(point: Point, scale: _Scale) -> Mark:
    before, after = point.values
    return Mark(scale.x(point.at), scale.y(before), scale.y(after), point)


def _stepped(limits: tuple[Point, ...], scale: _Scale) -> Iterator[str]:
    """A limit holds until another does, and the first is taken to have held from the beginning."""
    held = limits[0].values[0] if limits else 0
    if limits:
        yield f"{LEFT},{scale.y(held)}"
    for point in limits:
        yield f"{scale.x(point.at)},{scale.y(held)}"
        held = point.values[0]
        yield f"{scale.x(point.at)},{scale.y(held)}"
