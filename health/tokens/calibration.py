"""Learns how far estimates for one LLM are off, from the usage that its server reports. PURE; others store it.

The model: reported tokens = ratio × (text + a share of the tools + a share of the images). Servers write tools in
different ways, and some omit them, which must not make long texts look short; an image's cost depends on the model, and
a few images may cost more than all text. The ratio is a median, weighted by length: one generation from a router's
other model would move a mean for long; and in short prompts the template's fixed text dominates, while only long
prompts are in danger of being too long.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, product
from math import log
from statistics import fmean

GENERATIONS = 20
ENOUGH_SAMPLES = 3
# Plausible ratios: outside them a report is of something else, such as only the uncached part of the prompt. The least
# share of images, and the most tokens of one.
_PLAUSIBLE = (0.25, 4.0)
_LEAST_OF_IMAGES, _MOST_OF_AN_IMAGE = 0.1, 16_384
# Plausible ratios of a report of the text alone, without the tools or images that were sent.
_PLAUSIBLE_ALONE = (0.7, 1.5)
_SHARES = (1.0, 0.75, 1.25, 0.5, 1.5, 0.25, 0.0)
# Of images: the values that are tried first, and the factors by which the best is refined.
_IMAGE_SHARES = (1.0, 2.0, 0.5, 4.0, 0.25, 8.0, 0.125, 16.0, 0.0)
_IMAGE_SIZES = tuple(64.0 * 2**step for step in range(9))
_FINER = (2**0.5, 2**0.25, 2**0.125, 2**0.0625)
# Prior penalties: of a ratio of e or 1/e, of a tools' share of 0 or 2, of images at e times their count, and of images
# that all cost the same.
_RATIO_PENALTY, _TOOLS_PENALTY, _IMAGES_PENALTY, _FLAT_PENALTY = 0.2, 0.1, 0.02, 0.05
# After this many reports the penalties weigh no less, so that of two equally good explanations the likelier one stays.
_PRIOR_REPORTS = 5
# The least difference of losses for `leaves_tools_out`.
_SURE = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class RawEstimate:
    """Tokens of a request as counted, without a learned correction; `pictures` is the number of images."""

    text: int
    tools: int = 0
    images: int = 0
    pictures: int = 0

    @property
    def tokens(self) -> int:
        return self.text + self.tools + self.images


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """One generation: the raw estimate, the prediction with the correction of that time, and the reported tokens."""

    raw: RawEstimate
    predicted: int
    reported: int

    @property
    def estimated(self) -> int:
        return self.raw.tokens


@dataclass(frozen=True, kw_only=True, slots=True)
class Correction:
    """The factors of raw estimates of text, tools and images; `per_picture`: tokens added for each image."""

    ratio: float = 1.0
    tools_ratio: float = 1.0
    images_ratio: float = 1.0
    per_picture: float = 0.0

    def of(self, raw: RawEstimate) -> int:
        return round(self.ratio * raw.text + self.tools_ratio * raw.tools) + self.of_images(raw.images, raw.pictures)

    def of_images(self, tokens: int, pictures: int) -> int:
        return round(self.images_ratio * tokens + self.per_picture * pictures)

    @property
    def upwards(self) -> Correction:
        """Only the factors that make estimates larger."""
        ratios = {"ratio": self.ratio, "tools_ratio": self.tools_ratio, "images_ratio": self.images_ratio}
        return replace(self, **{name: max(1.0, ratio) for name, ratio in ratios.items()})


@dataclass(frozen=True, slots=True)
class Uncalibrated:
    """No report yet: estimates are not corrected, and their error is unknown."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Hypothesis:
    """A hypothesis about a request's size: the shares of tools and images that count, and the tokens of each image."""

    tools: float = 1.0
    images: float = 1.0
    picture: float = 0.0

    def counted(self, raw: RawEstimate) -> float:
        return raw.text + self.tools * raw.tools + self.images * raw.images + self.picture * raw.pictures

    def finer(self, step: float) -> Iterator[_Hypothesis]:
        for factor in (1.0, step, 1 / step):
            yield replace(self, images=self.images * factor, picture=self.picture * factor)

    @property
    def penalty(self) -> float:
        """The prior penalty of the hypothesis."""
        images = _FLAT_PENALTY if self.picture else _IMAGES_PENALTY * abs(log(self.images or 0.01))
        return _TOOLS_PENALTY * abs(self.tools - 1) + images


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibration:
    """The last 20 samples at most, oldest first; at least one."""

    samples: tuple[Sample, ...]

    @property
    def ratio(self) -> float:
        """Reported tokens per estimated token of text."""
        return _ratio(self.samples, _likeliest(self.samples))

    @property
    def correction(self) -> Correction:
        guess = _likeliest(self.samples)
        ratio = _ratio(self.samples, guess)
        return Correction(
            ratio=ratio,
            tools_ratio=ratio * guess.tools,
            images_ratio=ratio * guess.images if self.has_images else 1.0,
            per_picture=ratio * guess.picture,
        )

    @property
    def trusted(self) -> Correction:
        """Upwards at once, downwards only after several reports: one odd report must not cause an overflow."""
        return self.correction if self.is_trusted else self.correction.upwards

    @property
    def is_trusted(self) -> bool:
        return len(self.samples) >= ENOUGH_SAMPLES

    @property
    def has_images(self) -> bool:
        return any(sample.raw.pictures for sample in self.samples)

    @property
    def leaves_tools_out(self) -> bool:
        """Whether the reports show that the server omits the tools from the prompt; False if they are too few."""
        guess = _likeliest(self.samples)
        return not guess.tools and _loss(self.samples, replace(guess, tools=1.0)) - _loss(self.samples, guess) > _SURE

    @property
    def error_percent(self) -> float:
        """The mean error of the predictions, which were made before their reports: not the error of a fit."""
        return 100 * fmean(abs(sample.predicted - sample.reported) / sample.reported for sample in self.samples)

    @property
    def bias_percent(self) -> float:
        """The mean error with its sign: negative if the predictions were too low."""
        return 100 * fmean((sample.predicted - sample.reported) / sample.reported for sample in self.samples)


Calibrating = Calibration | Uncalibrated


def learn(calibration: Calibrating, raw: RawEstimate, *, reported: int, predicted: int | None = None) -> Calibrating:
    """The calibration after one more generation. An implausible report is ignored."""
    if raw.text <= 0 or not _is_plausible(raw, reported):
        return calibration
    known = calibration.samples if isinstance(calibration, Calibration) else ()
    told = apply(calibration, raw) if predicted is None else predicted
    return Calibration(samples=(*known, Sample(raw=raw, predicted=told, reported=reported))[-GENERATIONS:])


def apply(calibration: Calibrating, raw: RawEstimate) -> int:
    """The corrected estimate."""
    known = calibration.correction if isinstance(calibration, Calibration) else Correction()
    return known.of(raw)


def _is_plausible(raw: RawEstimate, reported: int) -> bool:
    least, most = _PLAUSIBLE
    said = raw.text + raw.tools
    if least * said + _LEAST_OF_IMAGES * raw.images <= reported <= most * said + _MOST_OF_AN_IMAGE * raw.pictures:
        return True
    least, most = _PLAUSIBLE_ALONE
    alone = [raw.text] * bool(raw.tools or raw.pictures) + [said] * bool(raw.pictures)
    return any(least <= reported / tokens <= most for tokens in alone)


@lru_cache(maxsize=256)
def _likeliest(samples: tuple[Sample, ...]) -> _Hypothesis:
    """The hypothesis that explains the reports best; of several the likelier one."""
    best = min(_hypotheses(samples), key=lambda guess: _loss(samples, guess))
    for step in _FINER if any(sample.raw.pictures for sample in samples) else ():
        best = min(best.finer(step), key=lambda guess: _loss(samples, guess))
    return best


def _hypotheses(samples: tuple[Sample, ...]) -> Iterator[_Hypothesis]:
    """The hypotheses to try. That all images cost the same is tried only with enough reports."""
    if not any(sample.raw.pictures for sample in samples):
        yield from (_Hypothesis(tools=share) for share in _SHARES)
        return
    shares = _SHARES if any(sample.raw.tools for sample in samples) else _SHARES[:1]
    yield from (_Hypothesis(tools=share, images=images) for share, images in product(shares, _IMAGE_SHARES))
    if len(samples) >= ENOUGH_SAMPLES:
        yield from (_Hypothesis(tools=share, images=0.0, picture=size) for share, size in product(shares, _IMAGE_SIZES))


def _ratio(samples: tuple[Sample, ...], guess: _Hypothesis) -> float:
    counted = [guess.counted(sample.raw) for sample in samples]
    rising = sorted((sample.reported / tokens, tokens) for sample, tokens in zip(samples, counted, strict=True))
    weights = tuple(accumulate(weight for _ratio, weight in rising))
    return rising[bisect_left(weights, weights[-1] / 2)][0]


def _loss(samples: tuple[Sample, ...], guess: _Hypothesis) -> float:
    """The loss of a hypothesis: its mean error on the reports, and its prior penalty."""
    ratio = _ratio(samples, guess)
    missed = fmean(min(1.0, abs(ratio * guess.counted(one.raw) / one.reported - 1)) for one in samples)
    return missed + (_RATIO_PENALTY * abs(log(ratio)) + guess.penalty) / min(len(samples), _PRIOR_REPORTS)
