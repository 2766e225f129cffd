"""Learning by how much estimates are off."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from health.tokens.calibration import GENERATIONS, Calibrating, Calibration, Sample, Uncalibrated, apply, learn


def learnt(pairs: Iterable[tuple[int, int]]) -> Calibrating:
    calibration: Calibrating = Uncalibrated()
    for estimated, reported in pairs:
        calibration = learn(calibration, estimated=estimated, reported=reported)
    return calibration


def test_without_a_report_an_estimate_stands_as_it_is() -> None:
    assert apply(Uncalibrated(), 1_000) == 1_000


def test_the_first_report_already_corrects() -> None:
    assert apply(learnt([(1_000, 1_200)]), 500) == 600


def test_one_odd_generation_changes_nothing() -> None:
    calibration = learnt([(1_000, 1_100)] * 9 + [(1_000, 3_900)])

    assert apply(calibration, 1_000) == 1_100


def test_a_long_generation_says_more_than_many_short_ones() -> None:
    calibration = learnt([(50, 75)] * 10 + [(4_000, 4_200)])

    assert apply(calibration, 4_000) == 4_200


def test_only_the_last_twenty_generations_count() -> None:
    calibration = learnt([(1_000, 2_000)] * 50 + [(1_000, 1_500)] * GENERATIONS)

    assert isinstance(calibration, Calibration)
    assert len(calibration.samples) == GENERATIONS == 20
    assert calibration.ratio == 1.5


def test_the_error_is_of_what_was_foretold_and_falls_as_it_learns() -> None:
    once, steady = learnt([(1_000, 1_250)]), learnt([(1_000, 1_250)] * 30)

    assert isinstance(once, Calibration)
    assert once.error_percent == pytest.approx(20)
    assert isinstance(steady, Calibration)
    assert steady.error_percent == 0


def test_the_bias_says_whether_too_little_was_foretold() -> None:
    known = Calibration(
        samples=tuple(Sample(estimated=100, foretold=foretold, reported=100) for foretold in (80, 90, 120))
    )

    assert known.bias_percent == pytest.approx(-10 / 3)
    assert known.error_percent == pytest.approx(50 / 3)


@pytest.mark.parametrize(("estimated", "reported"), [(0, 10), (-5, 10), (1_000, 0), (1_000, 60), (100, 5_000)])
def test_a_report_that_cannot_be_of_this_estimate_teaches_nothing(estimated: int, reported: int) -> None:
    known = learnt([(1_000, 1_100)])

    assert learn(known, estimated=estimated, reported=reported) is known


def test_learning_leaves_what_was_known_as_it_was() -> None:
    known = learnt([(1_000, 1_100)])

    learn(known, estimated=1_000, reported=1_300)

    assert known == learnt([(1_000, 1_100)])
