"""What a proposal may change at all: a limit, or the order of the chain. The guard's 80, 90 and 100 % never."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PROPOSABLE: Mapping[str, str] = {"limit": "limit", "chain": "chain"}


class NotProposable(ValueError):
    """This is not for the critic to change."""


def check_change(kind: str, change: Mapping[str, Any]) -> None:
    """Check what a proposal changes. Raises NotProposable for every key but the one of its kind, and for an unfit
    value."""
    key = PROPOSABLE.get(kind)
    if key is None or set(change) != {key}:
        raise NotProposable(f"{kind}: {', '.join(map(str, change)) or 'nothing'} cannot be proposed.")
    value = change[key]
    is_fit = _is_limit(value) if kind == "limit" else _is_chain(value)
    if not is_fit:
        raise NotProposable(f"{kind}: {value!r} cannot be proposed.")


def _is_limit(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_chain(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(name, str) for name in value)
