"""Whether a child that died is started again, and when. Pure: the clock is an argument."""

from __future__ import annotations

from dataclasses import dataclass

WINDOW_SECONDS = 60.0
MOST_DEATHS = 5
FIRST_DELAY_SECONDS = 0.5


@dataclass(frozen=True, kw_only=True)
class Restart:
    """Start it again after the delay."""

    delay: float


@dataclass(frozen=True, kw_only=True)
class GiveUp:
    """The process died too often."""

    deaths: int


def recent(deaths: tuple[float, ...], *, now: float) -> tuple[float, ...]:
    """The deaths that still count."""
    return tuple(death for death in deaths if now - death < WINDOW_SECONDS)


def after_death(deaths: tuple[float, ...], *, now: float) -> Restart | GiveUp:
    """What to do about the last of these deaths: each within the window doubles the wait, the fifth is the last."""
    count = len(recent(deaths, now=now))
    if count >= MOST_DEATHS:
        return GiveUp(deaths=count)
    return Restart(delay=FIRST_DELAY_SECONDS * 2 ** max(0, count - 1))
