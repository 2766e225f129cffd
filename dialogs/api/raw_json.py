"""JSON as clients send it, read once: what could not be stored or sent on is mended or refused here. PURE.

A client that cuts its texts by UTF-16 units sends halves of surrogate pairs, and a tool's output may hold NULs: a
conversation must not end on them. A number that no double holds is refused.
"""

from __future__ import annotations

import re
from math import isfinite
from typing import Any

from pydantic_core import from_json

# Every escape, so that what follows an escaped backslash is none; a pair of surrogates counts as one.
ESCAPES = re.compile(rb"\\(?:u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|u\w{4}|.)", re.DOTALL)
HALF = re.compile(rb"\\u[dD][89a-fA-F]\w\w")
NUL = rb"\u0000"


def parsed(raw: bytes) -> Any:
    """Raises ValueError where it is no JSON."""
    found = _read(ESCAPES.sub(_storable, raw) if NUL in raw else raw)
    if not _is_finite(found):
        raise ValueError("a number is out of range")
    return found


def _read(raw: bytes) -> Any:
    try:
        return from_json(raw, allow_inf_nan=False)
    except ValueError:
        return from_json(ESCAPES.sub(_storable, raw), allow_inf_nan=False)


def _storable(escape: re.Match[bytes]) -> bytes:
    """The signs that `dialogs.text.storable` puts in their place."""
    if escape[0] == NUL:
        return rb"\u2400"
    return rb"\ufffd" if HALF.fullmatch(escape[0]) else escape[0]


def _is_finite(value: Any) -> bool:
    if isinstance(value, float):
        return isfinite(value)
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    return not isinstance(value, list) or all(map(_is_finite, value))
