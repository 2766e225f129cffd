"""A script for a run of days, told in minutes: courses fill, are curated, and end, over and over.

Two courses take 50 generations and differ in how they end: the one in an automatic course after the countdown, the
other by the agent's own `clear_mind`. So any two stretches of 50 generations do the same work.
"""

from __future__ import annotations

import random
from string import ascii_lowercase
from typing import Any

from tests.dialogs.driver.conftest import calling, said

GENERATIONS = 300
# Caution begins above 100,000, critical above 180,000.
WINDOW = 200_000
CYCLE = 50


def reminder_of(course: int) -> str:
    return f"Learned in course {course}"


def steps(generations: int = GENERATIONS) -> list[dict[str, Any]]:
    """One step a generation."""
    return [step for first in range(1, 2 * generations // CYCLE, 2) for step in _overrun(first) + _tidy(first + 1)]


def _overrun(course: int) -> list[dict[str, Any]]:
    """27 generations: the countdown runs to its end."""
    return [*_growing(12, 20_000), *_curating(course), *_growing(7, 120_000), *_growing(6, 185_000, by=1_000)]


def _tidy(course: int) -> list[dict[str, Any]]:
    """23 generations: the agent looks back, works, writes down, and clears."""
    look_back = calling(20_000, "read_course", f'{{"course": {course - 1}, "page": 1}}')
    return [look_back, *_growing(11, 25_000), *_curating(course), *_growing(8, 120_000), calling(170_000, "clear_mind")]


def _curating(course: int) -> list[dict[str, Any]]:
    """Caution begins; the prompt is complied with."""
    return [said(105_000, "Going on."), calling(110_000, "add_reminder", f'{{"content": "{reminder_of(course)}"}}')]


def _growing(generations: int, tokens: int, *, by: int = 6_000) -> list[dict[str, Any]]:
    """Each step says something else: who says the same again and again goes round in circles."""
    return [said(tokens + number * by, _report(tokens + number * by)) for number in range(generations)]


def _report(seed: int) -> str:
    """Seventy words that no other step has."""
    chance = random.Random(seed)
    return " ".join("".join(chance.choices(ascii_lowercase, k=6)) for _word in range(70))
