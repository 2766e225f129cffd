"""The table of strategies: by the name that each has in a chain what it does, and what people read of it. Pure.

A strategy enters itself, by `@strategy` above its function; `strategies/__init__.py` imports every file that has one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from health.compaction.terms.ports import Strategy


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A strategy to people: on the card, in details, on the settings page. `icon` is a symbol of static/icons.svg.

    `label` is its name where details list it, `choice` what it does where it is put into the chain, `message` what is
    told while it is at work, `expecting` what comes out of it, where that is known beforehand.
    """

    icon: str
    label: str
    choice: str
    message: str
    expecting: str = ""
    pulses: bool = False


REGISTRY: dict[str, Strategy] = {}
SHOWN: dict[str, Shown] = {}


def strategy(shown: Shown) -> Callable[[Strategy], Strategy]:
    """Enter the function below into the table, by its own name."""

    def enter(run: Strategy) -> Strategy:
        REGISTRY[run.__name__], SHOWN[run.__name__] = run, shown
        return run

    return enter
