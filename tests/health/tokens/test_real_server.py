"""What a real server reports, foretold: llama.cpp with a model whose vocabulary is known, and as one that is not."""

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


def learned(model: str, address: str, tools: Sequence[Mapping[str, Any]] = ()) -> Calibration:
    """After eleven requests of a growing chat."""
    chat = prose.conversation(prose.ENGLISH, answer=500)[:25]
    calibration: Calibrating = Uncalibrated()
    for end in range(3, len(chat), 2):
        raw = RawEstimate(text=count_messages(chat[: end + 1], model), tools=tools_tokens(model, tools))
        reported = llama.prompt_tokens(address, chat[: end + 1], tools)
        calibration = learn(calibration, raw, reported=reported)
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


def test_a_template_that_leaves_the_tools_out_is_found_out(address: str) -> None:
    """The demo's model has such a one."""
    known = learned(llama.MODEL, address, [wire(tool) for tool in MEMORY])

    assert known.leaves_tools_out
    assert known.samples[-1].foretold == pytest.approx(known.samples[-1].reported, rel=0.02)
