"""What was made of the messages of the last requests: a client resends its whole history, and only its end is new.

A conversation is found by its first messages, and what it has in common with the request is told by comparing them: so
a request costs what is new in it. One for each process; what it has forgotten is made again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

from dialogs.api.canonical import chained, following_on
from dialogs.clients import ClientMessage

# By so many messages a conversation is told from others that begin alike.
FIRST = 3
# Of all requests that are remembered, as they came.
MOST_BYTES = 16 * 1024 * 1024
Raw = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Remembered:
    messages: Raw
    made: tuple[ClientMessage, ...]
    size: int


class Recent:
    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most, self._size, self._lock = most_bytes, 0, Lock()
        self._known: OrderedDict[str, Remembered] = OrderedDict()

    def chained(self, messages: Raw, *, root: str, size: int) -> tuple[ClientMessage, ...]:
        """As `canonical.chained`. `size` is that of the request, in bytes."""
        first = tuple(chained(messages[:FIRST], root=root))
        if len(messages) <= FIRST:
            return first
        key = first[-1].prefix
        known = self._known.get(key)
        same = _in_common(known.messages, messages) if known else 0
        begun = known.made[:same] if known and same > FIRST else first
        made = (*begun, *following_on(messages[len(begun) :], begun[-1].prefix))
        self._keep(key, Remembered(messages, made, size))
        return made

    def _keep(self, key: str, new: Remembered) -> None:
        with self._lock:
            before = self._known.pop(key, None)
            self._known[key] = new
            self._size += new.size - (before.size if before else 0)
            while self._size > self._most:
                self._size -= self._known.popitem(last=False)[1].size


def _in_common(before: Raw, now: Raw) -> int:
    """How many of the first messages are the same."""
    pairs = enumerate(zip(before, now, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(before), len(now)))
