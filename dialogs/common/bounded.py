"""What a process keeps at hand by a key: so many bytes at most, and nothing that nobody has asked for lately.

The bytes alone would let it grow for hours, by conversations that have long ended.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from time import monotonic
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")
# What is kept is made anew in milliseconds.
IDLE_SECONDS = 600.0


class BoundedCache(Generic[Key, Value]):
    """From any thread. Whoever uses a value keeps it anew; what was not kept anew is let go as others are kept."""

    def __init__(self, most: int) -> None:
        self._most, self._size, self._lock = most, 0, Lock()
        self._kept: OrderedDict[Key, tuple[Value, int, float]] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        kept = self._kept.get(key)
        return kept[0] if kept else None

    def keep(self, key: Key, value: Value, *, size: int) -> None:
        now = monotonic()
        with self._lock:
            self._size += size - self._kept.pop(key, (value, 0, now))[1]
            self._kept[key] = value, size, now
            while self._kept and (self._size > self._most or now - self._longest_idle() > IDLE_SECONDS):
                self._size -= self._kept.popitem(last=False)[1][1]

    def _longest_idle(self) -> float:
        return next(iter(self._kept.values()))[2]
