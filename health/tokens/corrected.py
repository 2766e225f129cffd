"""Counters over another counter: one that has learned from the server's reports, one that must not count too little."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from health.compaction.terms.ports import Counter, Grade
from health.tokens.calibration import Correction
from health.tokens.counters import counter_for

# GPT's vocabulary writes a number of three digits as one token, most others as three, and knows scripts that they do
# not: logs, hex and tables take 1.4 to 2.2 times its tokens elsewhere, Korean 1.7 times, prose 1.1. Llama 2's is as
# small as any that is in use. So a model of no known family is given the larger of the two, each with room for error.
MARGIN = 1.25
MARGIN_OF_FRUGAL = 1.1
# The same where Llama 2's vocabulary cannot be had.
MARGIN_ALONE = 1.45
_FRUGAL = "llama-2"


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


@dataclass(frozen=True)
class CautiousCounter:
    """Counts with a margin, for a model whose vocabulary nobody knows and no report has calibrated yet.

    `likely` says what it would count without the margin.
    """

    likely: Counter
    plain: Counter

    @property
    def name(self) -> str:
        return self.likely.name

    @property
    def grade(self) -> Grade:
        return self.likely.grade

    @property
    def per_message(self) -> int:
        return self.likely.per_message

    def count(self, texts: Sequence[str]) -> list[int]:
        likely, plain = self.likely.count(texts), self.plain.count(texts)
        frugal = counter_for(_FRUGAL)
        if frugal.grade is not Grade.EXACT:
            return [max(one, ceil(MARGIN_ALONE * size)) for one, size in zip(likely, plain, strict=True)]
        sizes = zip(likely, plain, frugal.count(texts), strict=True)
        return [max(one, ceil(MARGIN * size), ceil(MARGIN_OF_FRUGAL * other)) for one, size, other in sizes]


def likely_of(counter: Counter) -> Counter:
    """This counter without a margin."""
    return counter.likely if isinstance(counter, CautiousCounter) else counter


def plain_of(counter: Counter) -> Counter:
    """This counter without anything learned."""
    likely = likely_of(counter)
    return likely.counter if isinstance(likely, CorrectedCounter) else likely


def correction_of(counter: Counter) -> Correction:
    """What was learned for it; nothing for a counter that has not learned."""
    likely = likely_of(counter)
    return likely.correction if isinstance(likely, CorrectedCounter) else Correction()
