"""Counters on top of another counter: one with a learned correction, one with a margin for unknown models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from health.compaction.terms.ports import Counter, Grade
from health.tokens.calibration import Correction
from health.tokens.counters import counter_for

# GPT's vocabulary has a token for each number of three digits, most others take three, and it has more scripts: in
# other vocabularies logs, hex and tables take 1.4 to 2.2 times its tokens, Korean 1.7 times, prose 1.1. Llama 2's
# vocabulary is among the smallest in use. A model of no known family gets the larger of both counts, each with a
# margin.
MARGIN = 1.25
MARGIN_OF_FRUGAL = 1.1
# GPT's margin if Llama 2's vocabulary is not installed.
MARGIN_ALONE = 1.45
_FRUGAL = "llama-2"


@dataclass(frozen=True)
class CounterOnTop:
    """Has the name, grade and cost of a message of the counter below it."""

    counter: Counter

    @property
    def name(self) -> str:
        return self.counter.name

    @property
    def grade(self) -> Grade:
        return self.counter.grade

    @property
    def per_message(self) -> int:
        return self.counter.per_message


@dataclass(frozen=True)
class CorrectedCounter(CounterOnTop):
    """Applies a learned `Calibration.correction`."""

    correction: Correction

    @property
    def name(self) -> str:
        return f"{self.counter.name} × {self.correction.ratio:.2f}"

    def count(self, texts: Sequence[str]) -> list[int]:
        return [round(tokens * self.correction.ratio) for tokens in self.counter.count(texts)]


@dataclass(frozen=True)
class CautiousCounter(CounterOnTop):
    """Counts with a margin, for a model with an unknown vocabulary that no report has calibrated yet.

    `counter` counts without the margin, `plain` also without a learned correction.
    """

    plain: Counter

    def count(self, texts: Sequence[str]) -> list[int]:
        likely, plain = self.counter.count(texts), self.plain.count(texts)
        frugal = counter_for(_FRUGAL)
        if frugal.grade is not Grade.EXACT:
            return [max(one, ceil(MARGIN_ALONE * size)) for one, size in zip(likely, plain, strict=True)]
        sizes = zip(likely, plain, frugal.count(texts), strict=True)
        return [max(one, ceil(MARGIN * size), ceil(MARGIN_OF_FRUGAL * other)) for one, size, other in sizes]


def likely_of(counter: Counter) -> Counter:
    """The counter without a margin."""
    return counter.counter if isinstance(counter, CautiousCounter) else counter


def plain_of(counter: Counter) -> Counter:
    """The counter without a learned correction."""
    likely = likely_of(counter)
    return likely.counter if isinstance(likely, CorrectedCounter) else likely


def correction_of(counter: Counter) -> Correction:
    """The counter's learned correction; a neutral one if it has none."""
    likely = likely_of(counter)
    return likely.correction if isinstance(likely, CorrectedCounter) else Correction()
