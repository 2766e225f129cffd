"""Values that are kept by their keys while all of them together are small enough; the oldest are forgotten first."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Bounded(Generic[Key, Value]):
    """From any thread."""

    def __init__(self, most: int) -> None:
        self._most, self._size, self._lock = most, 0, Lock()
        self._kept: OrderedDict[Key, tuple[Value, int]] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        kept = self._kept.get(key)
        return kept[0] if kept else None

    def keep(self, key: Key, value: Value, *, size: int) -> None:
        with self._lock:
            self._size += size - self._kept.pop(key, (value, 0))[1]
            self._kept[key] = value, size
            while self._size > self._most:
                self._size -= self._kept.popitem(last=False)[1][1]
