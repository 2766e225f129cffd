"""A counter that has learned: another's estimates times what the server's reports say they are off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from health.compaction.ports import Counter, Grade
from health.tokens.calibration import Correction


@dataclass(frozen=True)
class CorrectedCounter:
    """`correction` as it was learned (`calibration.Calibration.correction`)."""

    counter: Counter
    correction: Correction

    @property
    def name(self) -> str:
        return f"{self.counter.name} × {self.correction.ratio:.2f}"

    @property
    def grade(self) -> Grade:
        return self.counter.grade

    @property
    def per_message(self) -> int:
        return self.counter.per_message

    def count(self, texts: Sequence[str]) -> list[int]:
        return [round(tokens * self.correction.ratio) for tokens in self.counter.count(texts)]
