"""Reading JSON that a server sent, which may be anything. Pure; a wrong shape reads as empty, never as an error."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

NOTHING: Mapping[str, Any] = {}
DEEPEST = 6
LONGEST_TEXT = 2_000
MOST_ITEMS = 100


def as_mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else NOTHING


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def as_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def recordable(value: object, depth: int = DEEPEST) -> Any:
    """The value as every database stores JSON: no NaN, no NUL, no lone surrogates, nothing endless."""
    if isinstance(value, Mapping):
        items = list(value.items())[:MOST_ITEMS] if depth else []
        return {_clean(str(name)): recordable(item, depth - 1) for name, item in items}
    if isinstance(value, list | tuple):
        return [recordable(item, depth - 1) for item in value[:MOST_ITEMS]] if depth else []
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    return _clean(str(value))


def _clean(text: str) -> str:
    return text[:LONGEST_TEXT].replace("\0", "").encode(errors="replace").decode()
