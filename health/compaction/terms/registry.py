"""The table of strategies: what each does, by the name that it has in a chain, and the texts that people read of it.

`@strategy` above a function enters it; `strategies/__init__.py` imports every file that has one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from health.compaction.terms.ports import Strategy


@dataclass(frozen=True, kw_only=True)
class StrategyTexts:
    """A strategy on the card, in details, on the settings page. `icon` is a symbol of static/icons.svg.

    `label` is its name in lists, `choice` says what it does, `message` what it is doing now, `expecting` what will come
    out of it, where that is known beforehand.
    """

    icon: str
    label: str
    choice: str
    message: str
    expecting: str = ""
    pulses: bool = False


REGISTRY: dict[str, Strategy] = {}
TEXTS: dict[str, StrategyTexts] = {}


def strategy(**texts: Any) -> Callable[[Strategy], Strategy]:
    """Enter the function below into the table by its own name, with these `StrategyTexts`."""

    def enter(run: Strategy) -> Strategy:
        REGISTRY[run.__name__], TEXTS[run.__name__] = run, StrategyTexts(**texts)
        return run

    return enter
