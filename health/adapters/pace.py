"""How fast an embedder is here, and for how long its vectors are kept. Clocks are handed in as `now`, in seconds."""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Row = NDArray[np.float32]

# The bound for one text. One that was slow is tried again after a while, and must then be clearly faster.
SLOW_MS, FAST_MS = 100.0, 80.0
RETRY_SECONDS = 600.0
# A verdict needs so many texts, and is about the last so many.
FEWEST_MEASURED, MOST_MEASURED = 16, 256


@dataclass
class Cache:
    """The vectors of texts: at most `most`, the least used leave first; each for `seconds` after it was made."""

    most: int
    seconds: float = float("inf")
    _rows: OrderedDict[bytes, tuple[float, Row]] = field(default_factory=OrderedDict)

    def get(self, key: bytes, now: float) -> Row | None:
        made, row = self._rows.get(key, (0.0, None))
        if row is None or now - made >= self.seconds:
            return None
        self._rows.move_to_end(key)
        return row

    def put(self, key: bytes, row: Row, now: float) -> None:
        self._rows[key] = (now, row)
        self._rows.move_to_end(key)
        if len(self._rows) > self.most:
            self._rows.popitem(last=False)


@dataclass
class Pace:
    """Whether a model keeps under 100 ms a text: judged over many texts, and slow to change its mind."""

    slow_since: float | None = None
    _measured: deque[tuple[int, float]] = field(default_factory=deque)

    def note(self, texts: int, seconds: float, now: float) -> None:
        """Adds a measurement of so many texts, and judges."""
        self._measured.append((texts, seconds))
        while self._texts - self._measured[0][0] >= MOST_MEASURED:
            self._measured.popleft()
        if self._texts >= FEWEST_MEASURED:
            bound = SLOW_MS if self.slow_since is None else FAST_MS
            self.slow_since = now if self.milliseconds > bound else None

    @property
    def milliseconds(self) -> float:
        """The mean for one text, 0 before any."""
        return 1000 * sum(seconds for _, seconds in self._measured) / (self._texts or 1)

    def may_begin(self, now: float) -> bool:
        """Whether a new run may use the model. One that was slow begins again with an empty record."""
        if self.slow_since is None:
            return True
        if now - self.slow_since < RETRY_SECONDS:
            return False
        self._measured.clear()
        return True

    @property
    def _texts(self) -> int:
        return sum(texts for texts, _ in self._measured)
