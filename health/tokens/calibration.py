"""How far estimates for one LLM are off, learned from what its server reported. Pure; persisting it is others' work.

Reported tokens are taken to be a ratio times (the text + a share of the tools): servers write tools in ways of their
own, and some leave them out, which must not make long texts look short. The ratio is a median, each generation
weighing as much as it is long. A median, as one generation with an image or from a router's other model moves a mean
for long. By length, as in short prompts the template's fixed words drown the rest, and only long ones are in danger.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate
from math import log
from statistics import fmean

GENERATIONS = 20
ENOUGH_SAMPLES = 3
# Outside this a report is of something else, such as the uncached part of the prompt alone.
_PLAUSIBLE = (0.25, 4.0)
# The same of a report of the text alone, where tools were sent.
_PLAUSIBLE_WITHOUT_TOOLS = (0.7, 1.5)
_SHARES = (1.0, 0.75, 1.25, 0.5, 1.5, 0.25, 0.0)
# How unlikely it is, before any report, that the ratio is e times or 1/e of one, and that the share is 0 or 2.
_ODD_RATIO, _ODD_SHARE = 0.2, 0.1
# By so much of a request must the reports be explained better for us to say so.
_SURE = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class RawEstimate:
    """Tokens of a request as they are counted, before anything learned corrects them."""

    text: int
    tools: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """One generation: the raw estimate, what was foretold with what was known then, and what was reported."""

    raw: RawEstimate
    foretold: int
    reported: int

    @property
    def estimated(self) -> int:
        return self.raw.text + self.raw.tools

    def counted(self, share: float) -> float:
        """What is counted where a server writes that share of the tools."""
        return self.raw.text + share * self.raw.tools


@dataclass(frozen=True, kw_only=True, slots=True)
class Correction:
    """What to multiply raw estimates with, of text and of tools."""

    ratio: float = 1.0
    tools_ratio: float = 1.0

    def of(self, raw: RawEstimate) -> int:
        return round(self.ratio * raw.text + self.tools_ratio * raw.tools)


@dataclass(frozen=True, slots=True)
class Uncalibrated:
    """Nothing was reported yet: estimates stand as they are, and nobody knows how good they are."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibration:
    """The last 20 samples at most, oldest first; at least one."""

    samples: tuple[Sample, ...]

    @property
    def ratio(self) -> float:
        """Reported tokens for each estimated one of text."""
        return self._ratio(self._share)

    @property
    def correction(self) -> Correction:
        share = self._share
        return Correction(ratio=self._ratio(share), tools_ratio=share * self._ratio(share))

    @property
    def trusted(self) -> Correction:
        """Upwards at once, downwards only after several reports: one odd report must not let a prompt overflow."""
        known = self.correction
        if self.is_trusted:
            return known
        return Correction(ratio=max(1.0, known.ratio), tools_ratio=max(1.0, known.tools_ratio))

    @property
    def is_trusted(self) -> bool:
        return len(self.samples) >= ENOUGH_SAMPLES

    @property
    def leaves_tools_out(self) -> bool:
        """Whether the reports are those of a server that shows the model none of the tools it is sent.

        Where tools are few beside the text, nobody can tell.
        """
        return self._share == 0.0 and self._doubt(1.0) - self._doubt(0.0) > _SURE

    @property
    def _share(self) -> float:
        """The share of the tools' estimate that explains the reports best, the likelier one where several do."""
        return min(_SHARES, key=self._doubt)

    def _ratio(self, share: float) -> float:
        rising = sorted((sample.reported / sample.counted(share), sample.counted(share)) for sample in self.samples)
        weights = tuple(accumulate(weight for _ratio, weight in rising))
        return rising[bisect_left(weights, weights[-1] / 2)][0]

    def _doubt(self, share: float) -> float:
        ratio = self._ratio(share)
        missed = fmean(abs(ratio * one.counted(share) / one.reported - 1) for one in self.samples)
        unlikely = _ODD_RATIO * abs(log(ratio)) + _ODD_SHARE * abs(share - 1)
        return missed + unlikely / len(self.samples)

    @property
    def error_percent(self) -> float:
        """By how much the foretold numbers missed the reported ones, on average: an honest error, not a fit's."""
        return 100 * fmean(abs(sample.foretold - sample.reported) / sample.reported for sample in self.samples)

    @property
    def bias_percent(self) -> float:
        """The same with its sign: below nothing where the foretold numbers were too low."""
        return 100 * fmean((sample.foretold - sample.reported) / sample.reported for sample in self.samples)


Calibrating = Calibration | Uncalibrated


def learn(calibration: Calibrating, raw: RawEstimate, *, reported: int, foretold: int | None = None) -> Calibrating:
    """What is known after one more generation. A report that cannot be of this estimate teaches nothing."""
    if raw.text <= 0 or not _is_plausible(raw, reported):
        return calibration
    known = calibration.samples if isinstance(calibration, Calibration) else ()
    told = apply(calibration, raw) if foretold is None else foretold
    return Calibration(samples=(*known, Sample(raw=raw, foretold=told, reported=reported))[-GENERATIONS:])


def apply(calibration: Calibrating, raw: RawEstimate) -> int:
    """The estimate, corrected by what was learned."""
    known = calibration.correction if isinstance(calibration, Calibration) else Correction()
    return known.of(raw)


def _is_plausible(raw: RawEstimate, reported: int) -> bool:
    least, most = _PLAUSIBLE
    if least <= reported / (raw.text + raw.tools) <= most:
        return True
    least, most = _PLAUSIBLE_WITHOUT_TOOLS
    return raw.tools > 0 and least <= reported / raw.text <= most
