"""Statistics of a context: how many messages, about how many tokens, whether a snapshot is there.

Characters / 4, and counted so nowhere else: for a debug line. Every decision uses `ports.Counter`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from health.compaction.snapshot import TaskSnapshot
from health.compaction.terms.units import Unit

CHARS_PER_TOKEN = 4
EVERY_STEPS = 5


@dataclass(frozen=True, kw_only=True)
class ContextStats:
    """`str()` is the debug line."""

    message_count: int
    estimated_tokens: int
    has_snapshot: bool

    def __str__(self) -> str:
        return f"Context stats: {self.message_count} messages, ~{self.estimated_tokens} tokens"


def stats(units: Iterable[Unit], *, snapshot: TaskSnapshot | None = None) -> ContextStats:
    units = tuple(units)
    characters = sum(map(_characters, units))
    images = sum(unit.image_tokens for unit in units)  # tokens already: 100 for each image
    return ContextStats(
        message_count=len(units),
        estimated_tokens=-(-characters // CHARS_PER_TOKEN) + images,
        has_snapshot=snapshot is not None and snapshot != TaskSnapshot(),
    )


def is_due(step: int, *, debug: bool) -> bool:
    """Whether the line is written after this step, counted from 1."""
    return debug and step > 0 and step % EVERY_STEPS == 0


def _characters(unit: Unit) -> int:
    """Text as it is; calls and their results as JSON."""
    calls = sum(len(_json({"name": call.name, "arguments": _read(call.arguments)})) for call in unit.calls)
    said = len(unit.content) if unit.answers is None else len(_json(_read(unit.content)))
    return said + calls


def _read(text: str) -> Any:
    """The value where the text is JSON, else the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
