"""Long logs with one line that matters, and many that look as if they did."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

from benchmarks.devsets.grammar import Draw, bank


def build_log(rng: random.Random, lines: int, error: str) -> str:
    """A build's log of so many lines; `error` stands in its second half, once."""
    words = bank("logs")
    now = datetime(2024, 3, 1 + rng.randrange(27), 8, 2, 11)  # noqa: DTZ001
    shown, at = [], rng.randrange(lines // 2, lines - 10)
    for number in range(lines):
        now += timedelta(milliseconds=rng.randrange(3, 900))
        level, text = ("ERROR", error) if number == at else _harmless(rng, words)
        shown.append(f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03} {level:<5} {text}")
    return "\n".join(shown) + "\n"


def _harmless(rng: random.Random, words: dict) -> tuple[str, str]:
    level = rng.choices(("INFO", "DEBUG", "WARN"), (12, 6, 1))[0]
    return level, Draw(rng, words["slots"]).say(rng.choice(words[level.lower()]))
