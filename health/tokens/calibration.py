"""How far estimates for one LLM are off, learned from what its server reported. Pure; persisting it is others' work.

Reported tokens are taken to be a ratio times (the text + a share of the tools + a share of the images): servers write
tools in ways of their own, and some leave them out, which must not make long texts look short; what an image costs is
the model's affair, and a few of them outweigh all text. The ratio is a median, each generation weighing as much as it
is long. A median, as one generation from a router's other model moves a mean for long. By length, as in short prompts
the template's fixed words drown the rest, and only long ones are in danger.
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
# Outside this a report is of something else, such as the uncached part of the prompt alone. An image can cost next to
# nothing, or what the largest one costs the hungriest model that we know.
_PLAUSIBLE = (0.25, 4.0)
_LEAST_OF_IMAGES, _MOST_OF_AN_IMAGE = 0.1, 16_384
# The same of a report of the text alone, where tools or images were sent.
_PLAUSIBLE_ALONE = (0.7, 1.5)
_SHARES = (1.0, 0.75, 1.25, 0.5, 1.5, 0.25, 0.0)
# Of images: what is tried first, and how the best of it is then made finer.
_IMAGE_SHARES = (1.0, 2.0, 0.5, 4.0, 0.25, 8.0, 0.125, 16.0, 0.0)
_IMAGE_SIZES = tuple(64.0 * 2**step for step in range(9))
_FINER = (2**0.5, 2**0.25, 2**0.125, 2**0.0625)
# How unlikely it is, before any report, that the ratio is e times or 1/e of one, that the share is 0 or 2, that images
# cost e times what they are counted as, and that all cost the same.
_ODD_RATIO, _ODD_SHARE, _ODD_IMAGES, _ODD_FLAT = 0.2, 0.1, 0.02, 0.05
# After so many reports that weighs no less any more: two explanations that are equally good can be told apart for ever.
_FORGETS_WHAT_IS_LIKELY = 5
# By so much of a request must the reports be explained better for us to say so.
_SURE = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class RawEstimate:
    """Tokens of a request as they are counted, before anything learned corrects them; `pictures`: how many images."""

    text: int
    tools: int = 0
    images: int = 0
    pictures: int = 0

    @property
    def tokens(self) -> int:
        return self.text + self.tools + self.images


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """One generation: the raw estimate, what was predicted with what was known then, and what was reported."""

    raw: RawEstimate
    predicted: int
    reported: int

    @property
    def estimated(self) -> int:
        return self.raw.tokens


@dataclass(frozen=True, kw_only=True, slots=True)
class Correction:
    """What to multiply raw estimates with, of text, tools and images; `per_picture`: what each image costs besides."""

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
        """What of it makes estimates larger."""
        ratios = {"ratio": self.ratio, "tools_ratio": self.tools_ratio, "images_ratio": self.images_ratio}
        return replace(self, **{name: max(1.0, ratio) for name, ratio in ratios.items()})


@dataclass(frozen=True, slots=True)
class Uncalibrated:
    """Nothing was reported yet: estimates stand as they are, and nobody knows how good they are."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Shape:
    """How a request's size comes about: the share of the tools and of the images that count, and what an image does."""

    tools: float = 1.0
    images: float = 1.0
    picture: float = 0.0

    def counted(self, raw: RawEstimate) -> float:
        return raw.text + self.tools * raw.tools + self.images * raw.images + self.picture * raw.pictures

    def finer(self, step: float) -> Iterator[_Shape]:
        for factor in (1.0, step, 1 / step):
            yield replace(self, images=self.images * factor, picture=self.picture * factor)

    @property
    def oddness(self) -> float:
        """How unlikely it is before any report."""
        images = _ODD_FLAT if self.picture else _ODD_IMAGES * abs(log(self.images or 0.01))
        return _ODD_SHARE * abs(self.tools - 1) + images


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibration:
    """The last 20 samples at most, oldest first; at least one."""

    samples: tuple[Sample, ...]

    @property
    def ratio(self) -> float:
        """Reported tokens for each estimated one of text."""
        return _ratio(self.samples, _shape(self.samples))

    @property
    def correction(self) -> Correction:
        shape = _shape(self.samples)
        ratio = _ratio(self.samples, shape)
        return Correction(
            ratio=ratio,
            tools_ratio=ratio * shape.tools,
            images_ratio=ratio * shape.images if self.has_images else 1.0,
            per_picture=ratio * shape.picture,
        )

    @property
    def trusted(self) -> Correction:
        """Upwards at once, downwards only after several reports: one odd report must not let a prompt overflow."""
        return self.correction if self.is_trusted else self.correction.upwards

    @property
    def is_trusted(self) -> bool:
        return len(self.samples) >= ENOUGH_SAMPLES

    @property
    def has_images(self) -> bool:
        return any(sample.raw.pictures for sample in self.samples)

    @property
    def leaves_tools_out(self) -> bool:
        """Whether the reports are those of a server that shows the model none of the tools it is sent.

        Where tools are few beside the text, nobody can tell.
        """
        shape = _shape(self.samples)
        return not shape.tools and _doubt(self.samples, replace(shape, tools=1.0)) - _doubt(self.samples, shape) > _SURE

    @property
    def error_percent(self) -> float:
        """By how much the predicted numbers missed the reported ones, on average: an honest error, not a fit's."""
        return 100 * fmean(abs(sample.predicted - sample.reported) / sample.reported for sample in self.samples)

    @property
    def bias_percent(self) -> float:
        """The same with its sign: below nothing where the predicted numbers were too low."""
        return 100 * fmean((sample.predicted - sample.reported) / sample.reported for sample in self.samples)


Calibrating = Calibration | Uncalibrated


def learn(calibration: Calibrating, raw: RawEstimate, *, reported: int, predicted: int | None = None) -> Calibrating:
    """What is known after one more generation. A report that cannot be of this estimate teaches nothing."""
    if raw.text <= 0 or not _is_plausible(raw, reported):
        return calibration
    known = calibration.samples if isinstance(calibration, Calibration) else ()
    told = apply(calibration, raw) if predicted is None else predicted
    return Calibration(samples=(*known, Sample(raw=raw, predicted=told, reported=reported))[-GENERATIONS:])


def apply(calibration: Calibrating, raw: RawEstimate) -> int:
    """The estimate, corrected by what was learned."""
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
def _shape(samples: tuple[Sample, ...]) -> _Shape:
    """The one that explains the reports best, the likelier one where several do."""
    best = min(_shapes(samples), key=lambda shape: _doubt(samples, shape))
    for step in _FINER if any(sample.raw.pictures for sample in samples) else ():
        best = min(best.finer(step), key=lambda shape: _doubt(samples, shape))
    return best


def _shapes(samples: tuple[Sample, ...]) -> Iterator[_Shape]:
    """The shapes to try. That all images cost the same is tried once there are enough reports to tell."""
    if not any(sample.raw.pictures for sample in samples):
        yield from (_Shape(tools=share) for share in _SHARES)
        return
    shares = _SHARES if any(sample.raw.tools for sample in samples) else _SHARES[:1]
    yield from (_Shape(tools=share, images=images) for share, images in product(shares, _IMAGE_SHARES))
    if len(samples) >= ENOUGH_SAMPLES:
        yield from (_Shape(tools=share, images=0.0, picture=size) for share, size in product(shares, _IMAGE_SIZES))


def _ratio(samples: tuple[Sample, ...], shape: _Shape) -> float:
    counted = [shape.counted(sample.raw) for sample in samples]
    rising = sorted((sample.reported / tokens, tokens) for sample, tokens in zip(samples, counted, strict=True))
    weights = tuple(accumulate(weight for _ratio, weight in rising))
    return rising[bisect_left(weights, weights[-1] / 2)][0]


def _doubt(samples: tuple[Sample, ...], shape: _Shape) -> float:
    """How badly a shape explains the reports: the mean error, and how unlikely the shape is by itself."""
    ratio = _ratio(samples, shape)
    missed = fmean(min(1.0, abs(ratio * shape.counted(one.raw) / one.reported - 1)) for one in samples)
    return missed + (_ODD_RATIO * abs(log(ratio)) + shape.oddness) / min(len(samples), _FORGETS_WHAT_IS_LIKELY)
