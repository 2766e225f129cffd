"""Checks of single values of a configuration: each gives the value back or refuses it, naming its key.

A check is handed the value and the key's path. NaN is no number here, and True is no whole one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import StrEnum
from reprlib import Repr
from typing import Any

Check = Callable[[object, str], Any]
# Below this a float tells whole numbers apart.
MOST = 10**15
# A refusal shows so many characters of the value, and only the outer lists of nested ones: with aliases a short YAML
# text can stand for more than a machine holds.
MOST_SHOWN = 80
_brief = Repr()
_brief.maxlevel = 2


class InvalidConfig(ValueError):
    """The configuration cannot be used; the message names the key and what it must be.

    `path` is the path of the key, `must` what its value must be: callers translate it. Both may be empty.
    """

    def __init__(self, message: str, *, path: str = "", must: str = "") -> None:
        super().__init__(message)
        self.path, self.must = path, must


def refusal(path: str, must: str, value: object) -> InvalidConfig:
    shown = repr(value[:MOST_SHOWN]) if isinstance(value, str) else _brief.repr(value)
    shown = shown if len(shown) <= MOST_SHOWN else shown[: MOST_SHOWN - 1] + "…"
    return InvalidConfig(f"{path} must be {must}, not {shown}.", path=path, must=must)


def number(least: float, most: float = math.inf) -> Check:
    must = f"a number from {least:g} to {most:g}" if most < math.inf else f"a number of at least {least:g}"

    def check(value: object, path: str) -> float:
        # The comparison is false for NaN.
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise refusal(path, must, value)
        return _no_more(value, path)

    return check


def _no_more(value: Any, path: str) -> Any:
    if value > MOST:
        raise refusal(path, f"at most {MOST:,}", value)
    return value


share = number(0, 1)


def whole(least: int) -> Check:
    def check(value: object, path: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise refusal(path, f"a whole number of at least {least:,}", value)
        return _no_more(value, path)

    return check


def flag(value: object, path: str) -> bool:
    if not isinstance(value, bool):
        raise refusal(path, "true or false", value)
    return value


def name(value: object, path: str) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise refusal(path, "a name in printable characters", value)
    return value


def one_of(choices: type[StrEnum]) -> Check:
    def check(value: object, path: str) -> StrEnum:
        chosen = next((choice for choice in choices if choice == value), None)
        if chosen is None:
            raise refusal(path, " or ".join(choices), value)
        return chosen

    return check


def each(check: Check) -> Check:
    def checked(value: object, path: str) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise refusal(path, "a list", value)
        return tuple(check(one, f"{path}[{position}]") for position, one in enumerate(value))

    return checked


def section(checks: Mapping[str, Check], build: Callable[..., Any] = dict) -> Check:
    """A mapping of these keys, each checked, made into what `build` makes of them. Keys may be missing.

    The whole document has an empty path.
    """

    def check(value: object, path: str) -> Any:
        here = path or "the document"
        if not isinstance(value, Mapping):
            raise refusal(here, "a section with keys", value)
        unknown = [str(key) for key in value if key not in checks]
        if unknown:
            where = f"{path}.{unknown[0]}" if path else unknown[0]
            raise InvalidConfig(f"{here} has no key {unknown[0]!r}; it knows {', '.join(checks)}.", path=where)
        return build(**{key: checks[key](one, f"{path}.{key}" if path else key) for key, one in value.items()})

    return check
