"""Learning by how much estimates are off."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from health.tokens.calibration import (
    GENERATIONS,
    Calibrating,
    Calibration,
    Correction,
    RawEstimate,
    Sample,
    Uncalibrated,
    apply,
    learn,
)


def learnt(pairs: Iterable[tuple[int, int]]) -> Calibrating:
    calibration: Calibrating = Uncalibrated()
    for estimated, reported in pairs:
        calibration = learn(calibration, RawEstimate(text=estimated), reported=reported)
    return calibration


def taught(server: Callable[[int, int], int], *requests: tuple[int, int]) -> Calibration:
    """What `server` teaches, which reports so much of requests of so much text and tools."""
    calibration: Calibrating = Uncalibrated()
    for text, tools in requests:
        calibration = learn(calibration, RawEstimate(text=text, tools=tools), reported=server(text, tools))
    assert isinstance(calibration, Calibration)
    return calibration


def test_without_a_report_an_estimate_stands_as_it_is() -> None:
    assert apply(Uncalibrated(), RawEstimate(text=1_000)) == 1_000


def test_the_first_report_already_corrects() -> None:
    assert apply(learnt([(1_000, 1_200)]), RawEstimate(text=500)) == 600


def test_one_odd_generation_changes_nothing() -> None:
    calibration = learnt([(1_000, 1_100)] * 9 + [(1_000, 3_900)])

    assert apply(calibration, RawEstimate(text=1_000)) == 1_100


def test_a_long_generation_says_more_than_many_short_ones() -> None:
    calibration = learnt([(50, 75)] * 10 + [(4_000, 4_200)])

    assert apply(calibration, RawEstimate(text=4_000)) == 4_200


def test_only_the_last_twenty_generations_count() -> None:
    calibration = learnt([(1_000, 2_000)] * 50 + [(1_000, 1_500)] * GENERATIONS)

    assert isinstance(calibration, Calibration)
    assert len(calibration.samples) == GENERATIONS == 20
    assert calibration.ratio == 1.5


def test_the_error_is_of_what_was_predicted_and_falls_as_it_learns() -> None:
    once, steady = learnt([(1_000, 1_250)]), learnt([(1_000, 1_250)] * 30)

    assert isinstance(once, Calibration)
    assert once.error_percent == pytest.approx(20)
    assert isinstance(steady, Calibration)
    assert steady.error_percent == 0


def test_the_bias_says_whether_too_little_was_predicted() -> None:
    known = Calibration(
        samples=tuple(
            Sample(raw=RawEstimate(text=100), predicted=predicted, reported=100) for predicted in (80, 90, 120)
        )
    )

    assert known.bias_percent == pytest.approx(-10 / 3)
    assert known.error_percent == pytest.approx(50 / 3)


@pytest.mark.parametrize(("estimated", "reported"), [(0, 10), (-5, 10), (1_000, 0), (1_000, 60), (100, 5_000)])
def test_a_report_that_cannot_be_of_this_estimate_teaches_nothing(estimated: int, reported: int) -> None:
    known = learnt([(1_000, 1_100)])

    assert learn(known, RawEstimate(text=estimated), reported=reported) is known


def test_learning_leaves_what_was_known_as_it_was() -> None:
    known = learnt([(1_000, 1_100)])

    learn(known, RawEstimate(text=1_000), reported=1_300)

    assert known == learnt([(1_000, 1_100)])


# --- tools ---


@pytest.mark.parametrize("factor", [0.8, 1.0, 1.3])
def test_of_a_server_that_leaves_tools_out_a_longer_text_is_predicted_well(factor: float) -> None:
    known = taught(lambda text, _tools: round(factor * text), (1_500, 2_000), (2_500, 2_000), (4_000, 2_000))

    assert known.leaves_tools_out
    assert apply(known, RawEstimate(text=20_000, tools=2_000)) == pytest.approx(factor * 20_000, rel=0.01)


@pytest.mark.parametrize("factor", [0.7, 1.0, 1.3])
def test_of_a_server_that_writes_tools_in_its_own_way_a_longer_text_is_not_overrated(factor: float) -> None:
    known = taught(lambda text, tools: text + round(factor * tools), (400, 1_000), (600, 1_000), (1_200, 1_000))

    assert not known.leaves_tools_out
    assert apply(known, RawEstimate(text=10_000, tools=1_000)) == pytest.approx(11_000, rel=0.25)


def test_of_few_tools_beside_much_text_nobody_says_that_they_are_left_out() -> None:
    known = taught(lambda text, _tools: text, *((text, 60) for text in (5_000, 5_500, 6_000, 7_000)))

    assert not known.leaves_tools_out


def test_one_report_of_little_text_says_nothing_bad_of_tools() -> None:
    known = taught(lambda text, tools: text + tools, (100, 2_000))

    assert apply(known, RawEstimate(text=100, tools=2_000)) == 2_100
    assert not known.leaves_tools_out


def test_a_report_far_below_the_estimate_teaches_where_it_fits_the_text_alone() -> None:
    known = taught(lambda text, _tools: text, (300, 3_000))

    assert known.leaves_tools_out
    assert apply(known, RawEstimate(text=300, tools=3_000)) == 300


def test_the_uncached_rest_of_a_prompt_with_tools_teaches_nothing() -> None:
    known = learnt([(1_000, 1_100)])

    assert learn(known, RawEstimate(text=3_000, tools=6_000), reported=800) is known


# --- images ---


def with_images(
    server: Callable[[RawEstimate], float], *, each: int, turns: int, odd: dict[int, int] | None = None
) -> list[tuple[int, int]]:
    """What is predicted of requests that grow by one image and 60 words a turn, and what the server reports."""
    known: Calibrating = Uncalibrated()
    told = []
    for turn in range(1, turns + 1):
        raw = RawEstimate(text=100 + 60 * turn, images=each * turn, pictures=turn)
        trusted = known.trusted if isinstance(known, Calibration) else Correction()
        told.append((trusted.of(raw), round(server(raw))))
        known = learn(known, raw, reported=(odd or {}).get(turn, told[-1][1]))
    return told


@pytest.mark.parametrize(("each", "costs"), [(100, 800), (85, 800), (768, 5000), (768, 16_000)])
def test_images_that_cost_far_more_than_was_thought_are_predicted_after_one_report(each: int, costs: int) -> None:
    told = with_images(lambda raw: raw.text + costs * raw.pictures, each=each, turns=14)

    assert all(predicted == pytest.approx(reported, rel=0.03) for predicted, reported in told[1:])


@pytest.mark.parametrize(("each", "costs"), [(768, 256), (1398, 256), (768, 0)])
def test_images_that_cost_less_are_believed_after_three_reports(each: int, costs: int) -> None:
    told = with_images(lambda raw: raw.text + costs * raw.pictures, each=each, turns=14)

    assert all(predicted >= reported for predicted, reported in told[:3])
    assert all(predicted == pytest.approx(reported, rel=0.03) for predicted, reported in told[3:])


def test_where_every_image_costs_the_same_its_size_no_longer_counts() -> None:
    known: Calibrating = Uncalibrated()
    for turn, size in enumerate([768, 2048, 900, 1500, 768, 2048]):
        raw = RawEstimate(text=500 + 100 * turn, images=size, pictures=1)
        known = learn(known, raw, reported=raw.text + 300)

    assert apply(known, RawEstimate(text=1000, images=4 * 2048, pictures=4)) == pytest.approx(2200, rel=0.05)


def test_one_odd_report_of_images_moves_little() -> None:
    told = with_images(lambda raw: raw.text + 800 * raw.pictures, each=100, turns=14, odd={4: 700, 8: 20_000})

    assert all(predicted == pytest.approx(reported, rel=0.05) for predicted, reported in told[1:])


def test_images_teach_nothing_of_words() -> None:
    known: Calibrating = Uncalibrated()
    for turn in range(6):
        raw = RawEstimate(text=2000 + 500 * turn, images=768 * (turn // 2), pictures=turn // 2)
        known = learn(known, raw, reported=raw.text + 2500 * raw.pictures)

    assert apply(known, RawEstimate(text=20_000)) == pytest.approx(20_000, rel=0.02)


def test_a_report_that_no_number_of_images_explains_teaches_nothing() -> None:
    known = learnt([(1_000, 1_100)])

    assert learn(known, RawEstimate(text=1_000, images=768, pictures=1), reported=40_000) is known
