"""Sentences from banks: `[one|another]` is a choice, `{slot}` a word of the bank or a value that is given.

Choices may nest. `{slot}` that is drawn stays the same within one `Draw`, so that a fact agrees with itself.
"""

from __future__ import annotations

import random
import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml

_INNERMOST = re.compile(r"\[([^\[\]]*\|[^\[\]]*)\]")
_SLOT = re.compile(r"\{(\w+)\}")
_NUMBER = re.compile(r"#(-?\d+)-(\d+)(?:/(\d+))?#")
Bank = dict[str, Any]


@cache
def bank(name: str) -> Bank:
    """One file of words/, read once. A slot's words are written as one text, with "; " between them."""
    words = yaml.safe_load((Path(__file__).parent / "words" / f"{name}.yaml").read_text())
    return words | {"slots": {slot: options.split("; ") for slot, options in words.get("slots", {}).items()}}


def slots_in(template: str) -> list[str]:
    """The names of its slots."""
    return _SLOT.findall(template)


class Draw:
    """Values drawn so far; what is not there yet is drawn from `slots` when it is first named."""

    def __init__(self, rng: random.Random, slots: dict[str, list[str]], **given: str) -> None:
        self.rng, self.slots, self.values = rng, slots, dict(given)

    def fresh(self, **given: str) -> Draw:
        """Another draw from the same bank with these values only."""
        return Draw(self.rng, self.slots, **given)

    def say(self, template: str) -> str:
        """The template with its choices made, slots filled and numbers (`#10-90/5#`: in steps of 5) thrown."""
        text = template
        while _INNERMOST.search(text) or _SLOT.search(text):
            text = _INNERMOST.sub(lambda found: self.rng.choice(found[1].split("|")), text)
            text = _SLOT.sub(self._value, text)
        return _NUMBER.sub(lambda n: str(self.rng.randrange(int(n[1]), int(n[2]) + 1, int(n[3] or 1))), text)

    def _value(self, found: re.Match[str]) -> str:
        name = found[1]
        if name not in self.values:
            slot = name.rstrip("0123456789")  # {city2} is another city than {city}
            taken = set(self.values.values())
            options = [option for option in self.slots[slot] if option not in taken] or self.slots[slot]
            self.values[name] = self.say(self.rng.choice(options))
        return self.values[name]


class Deck:
    """Templates without repetition until all were dealt."""

    def __init__(self, rng: random.Random, cards: list[Any]) -> None:
        self.rng, self.cards, self.left = rng, cards, list[Any]()

    def deal(self) -> Any:
        if not self.left:
            self.left = self.rng.sample(self.cards, len(self.cards))
        return self.left.pop()
