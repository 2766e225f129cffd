"""A counter that has learned: another's estimates times what the server's reports say they are off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from health.compaction.ports import Counter, Grade


@dataclass(frozen=True)
class CorrectedCounter:
    """`ratio` is reported tokens for each estimated one (`calibration.Calibration.ratio`)."""

    counter: Counter
    ratio: float

    @property
    def name(self) -> str:
        return f"{self.counter.name} × {self.ratio:.2f}"

    @property
    def grade(self) -> Grade:
        return self.counter.grade

    @property
    def per_message(self) -> int:
        return self.counter.per_message

    def count(self, texts: Sequence[str]) -> list[int]:
        return [round(tokens * self.ratio) for tokens in self.counter.count(texts)]
