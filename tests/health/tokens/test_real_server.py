"""What a real server reports, predicted: llama.cpp with a model whose vocabulary is known, and as one that is not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from benchmarks import llama, prose
from dialogs.agents.tools.base import wire
from dialogs.agents.tools.memory import REMINDERS as MEMORY
from health.tokens.calibration import Calibrating, Calibration, RawEstimate, Uncalibrated, learn
from health.tokens.messages import count_messages, tools_tokens

LEARNING = 5
pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with llama.server(context=4096) as found:
        yield found


CHAT = prose.conversation(prose.ENGLISH, answer=500)[:25]
ENDS = range(4, len(CHAT) + 1, 2)
FEW = ENDS[: LEARNING + 1]


@pytest.fixture(scope="module")
def reported(address: str) -> list[int]:
    """Of each of eleven requests of a growing chat. The model reads for seconds, so that it is asked once for all."""
    return [llama.prompt_tokens(address, CHAT[:end]) for end in ENDS]


def learned(model: str, reported: Sequence[int], tools: Sequence[Mapping[str, Any]] = ()) -> Calibration:
    calibration: Calibrating = Uncalibrated()
    for end, count in zip(ENDS, reported, strict=False):
        raw = RawEstimate(text=count_messages(CHAT[:end], model), tools=tools_tokens(model, tools))
        calibration = learn(calibration, raw, reported=count)
    assert isinstance(calibration, Calibration)
    assert len(calibration.samples) == len(reported)
    return calibration


def test_a_known_models_count_is_within_five_percent_from_the_first_request(reported: list[int]) -> None:
    for sample in learned(llama.MODEL, reported).samples:
        assert sample.estimated == pytest.approx(sample.reported, rel=0.05)


@pytest.mark.parametrize("model", [llama.MODEL, "a-name-of-no-family"])
def test_after_five_generations_any_models_count_is_predicted_within_two_percent(
    model: str, reported: list[int]
) -> None:
    for sample in learned(model, reported).samples[LEARNING:]:
        assert sample.predicted == pytest.approx(sample.reported, rel=0.02)
        assert sample.estimated == pytest.approx(sample.reported, rel=0.15)


def test_a_template_that_leaves_the_tools_out_is_found_out(address: str) -> None:
    """The demo's model has such a one."""
    tools = [wire(tool) for tool in MEMORY]
    reported = [llama.prompt_tokens(address, CHAT[:end], tools) for end in FEW]

    known = learned(llama.MODEL, reported, tools)

    assert known.leaves_tools_out
    assert known.samples[-1].predicted == pytest.approx(known.samples[-1].reported, rel=0.02)
