"""What a real server reports, foretold: llama.cpp with a model whose vocabulary is known, and as one that is not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks import llama, prose
from health.tokens.calibration import Calibrating, Calibration, RawEstimate, Uncalibrated, learn
from health.tokens.messages import count_messages

LEARNING = 5
pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with llama.server(context=4096) as found:
        yield found


def learned(model: str, address: str) -> Calibration:
    """After eleven requests of a growing chat."""
    chat = prose.conversation(prose.ENGLISH, answer=500)[:25]
    calibration: Calibrating = Uncalibrated()
    for end in range(3, len(chat), 2):
        estimated = count_messages(chat[: end + 1], model)
        reported = llama.prompt_tokens(address, chat[: end + 1])
        calibration = learn(calibration, RawEstimate(text=estimated), reported=reported)
    assert isinstance(calibration, Calibration)
    assert len(calibration.samples) == 11
    return calibration


def test_a_known_models_count_is_within_five_percent_from_the_first_request(address: str) -> None:
    for sample in learned(llama.MODEL, address).samples:
        assert sample.estimated == pytest.approx(sample.reported, rel=0.05)


@pytest.mark.parametrize("model", [llama.MODEL, "a-name-of-no-family"])
def test_after_five_generations_any_models_count_is_foretold_within_two_percent(model: str, address: str) -> None:
    for sample in learned(model, address).samples[LEARNING:]:
        assert sample.foretold == pytest.approx(sample.reported, rel=0.02)
        assert sample.estimated == pytest.approx(sample.reported, rel=0.15)
