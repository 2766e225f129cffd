"""A cache in a process, bounded in bytes; values that were not used lately are dropped too, since the cache would
otherwise stay full of conversations that have ended.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from time import monotonic
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")
# A value that was dropped is computed again in milliseconds.
IDLE_SECONDS = 600.0


class BoundedCache(Generic[Key, Value]):
    """For any thread. A caller that uses a value keeps it again; each `keep` drops those not kept again lately."""

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
