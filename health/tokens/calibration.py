"""How far estimates for one LLM are off, learned from what its server reported. Pure; persisting it is others' work.

The ratio is a median, each generation weighing as much as it is long. A median, as one generation with an image or
from a router's other model moves a mean for long. By length, as in short prompts the template's fixed words drown
the rest, and only long ones are in danger.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate
from statistics import fmean

GENERATIONS = 20
# Outside this a report is of something else, such as the uncached part of the prompt alone.
_PLAUSIBLE = (0.25, 4.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """One generation: the raw estimate, what was foretold with what was known then, and what was reported."""

    estimated: int
    foretold: int
    reported: int

    @property
    def ratio(self) -> float:
        return self.reported / self.estimated


@dataclass(frozen=True, slots=True)
class Uncalibrated:
    """Nothing was reported yet: estimates stand as they are, and nobody knows how good they are."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibration:
    """The last 20 samples at most, oldest first; at least one."""

    samples: tuple[Sample, ...]

    @property
    def ratio(self) -> float:
        """Reported tokens for each estimated one."""
        rising = sorted(self.samples, key=lambda sample: sample.ratio)
        weights = tuple(accumulate(sample.estimated for sample in rising))
        return rising[bisect_left(weights, weights[-1] / 2)].ratio

    @property
    def error_percent(self) -> float:
        """By how much the foretold numbers missed the reported ones, on average: an honest error, not a fit's."""
        return 100 * fmean(abs(sample.foretold - sample.reported) / sample.reported for sample in self.samples)

    @property
    def bias_percent(self) -> float:
        """The same with its sign: below nothing where the foretold numbers were too low."""
        return 100 * fmean((sample.foretold - sample.reported) / sample.reported for sample in self.samples)


Calibrating = Calibration | Uncalibrated


def learn(calibration: Calibrating, *, estimated: int, reported: int) -> Calibrating:
    """What is known after one more generation. A report that cannot be of this estimate teaches nothing."""
    if estimated <= 0 or not _PLAUSIBLE[0] <= reported / estimated <= _PLAUSIBLE[1]:
        return calibration
    known = calibration.samples if isinstance(calibration, Calibration) else ()
    sample = Sample(estimated=estimated, foretold=apply(calibration, estimated), reported=reported)
    return Calibration(samples=(*known, sample)[-GENERATIONS:])


def apply(calibration: Calibrating, estimated: int) -> int:
    """The estimate, corrected by what was learned."""
    return round(estimated * calibration.ratio) if isinstance(calibration, Calibration) else estimated
